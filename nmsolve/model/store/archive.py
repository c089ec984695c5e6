"""Zip archives whose members are packed and unpacked in parallel.

The standard library can list an archive, but packs members one after the other and reads them through one file
position. So members are written and read here: records as in PKWARE's APPNOTE.TXT 6.3.10, with the 64-bit extension
where a number needs it. Dates are 1980-01-01, so that equal content gives equal bytes.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple

from nmsolve.model.errors import InputError
from nmsolve.model.host.disk import read_at

_LOCAL, _CENTRAL, _END = struct.Struct("<4s5H3L2H"), struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s4H2LH")
_END64, _LOCATOR = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
_DATE = (1 << 5) | 1  # 1980-01-01
_FULL16, _FULL32 = 2**16 - 1, 2**32 - 1
#: Where the 64-bit records begin; tests lower these.
_COUNT_LIMIT, _OFFSET_LIMIT = _FULL16, _FULL32

#: Deflate cannot shrink by more than this factor (258 bytes for two bits).
DEFLATE_LIMIT = 1032

#: What the standard library raises for damaged archives.
DAMAGE = (zipfile.BadZipFile, struct.error, EOFError, ValueError, RuntimeError, NotImplementedError)


def deflate(data: bytes, level: int) -> bytes:
    """Return ``data`` as a raw deflate stream, as zip members hold it."""
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9)
    return packer.compress(data) + packer.flush()


class ZipWriter:
    """Writes members that are already packed, one after the other, into an open file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._at = 0
        self._central: list[bytes] = []

    def add(self, name: str, packed: bytes, size: int, crc: int) -> None:
        """Append the member ``name``: ``packed`` deflates to ``size`` bytes whose checksum is ``crc``."""
        key = name.encode()
        large = max(size, len(packed)) >= _OFFSET_LIMIT
        sizes = (_FULL32, _FULL32) if large else (len(packed), size)
        extra = struct.pack("<2H2Q", 1, 16, size, len(packed)) if large else b""
        need = 45 if large else 20
        local = _LOCAL.pack(b"PK\3\4", need, 0, 8, 0, _DATE, crc, *sizes, len(key), len(extra)) + key + extra
        at = self._at
        far = at >= _OFFSET_LIMIT
        if far:
            extra = (extra or struct.pack("<2H", 1, 0)) + struct.pack("<Q", at)
            extra = struct.pack("<2H", 1, len(extra) - 4) + extra[4:]
        head = (45, 45 if extra else 20, 0, 8, 0, _DATE, crc, *sizes, len(key), len(extra), 0, 0, 0, 0)
        self._central.append(_CENTRAL.pack(b"PK\1\2", *head, _FULL32 if far else at) + key + extra)
        self._write(local)
        self._write(packed)

    def finish(self) -> None:
        """Write the directory."""
        at, count = self._at, len(self._central)
        self._write(b"".join(self._central))
        size = self._at - at
        if max(at, size) >= _OFFSET_LIMIT or count >= _COUNT_LIMIT:
            end64 = self._at
            self._write(_END64.pack(b"PK\6\6", _END64.size - 12, 45, 45, 0, 0, count, count, size, at))
            self._write(_LOCATOR.pack(b"PK\6\7", 0, end64, 1))
            count, size, at = _FULL16, _FULL32, _FULL32
        self._write(_END.pack(b"PK\5\6", 0, 0, count, count, size, at, 0))

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._at += len(data)


class Member(NamedTuple):
    """Where a member lies: offset of its local header, packed and unpacked bytes, checksum, stored or deflated."""

    at: int
    packed: int
    size: int
    crc32: int
    deflated: bool


class ZipReader:
    """Reads members of an archive; any number of threads at once.

    Raises
    ------
    InputError : no archive, or one whose directory cannot be true
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open(path, "rb")  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise InputError((error.strerror or str(error)).lower(), str(path), "a readable file") from None
        try:
            self.members = self._directory()
        except BaseException:
            self._file.close()
            raise

    def _directory(self) -> dict[str, Member]:
        try:
            size = os.fstat(self._file.fileno()).st_size
            with zipfile.ZipFile(self._file) as archive:
                entries = archive.infolist()
        except (*DAMAGE, OSError) as error:
            reason = str(error).lower() or "truncated"
            raise InputError(
                f"not a zip archive, or not a complete one ({reason})", str(self.path), "a .nmz file"
            ) from None
        out: dict[str, Member] = {}
        for e in entries:
            where = f"{self.path}: {e.filename}"
            if e.filename in out:
                raise InputError("the archive holds this member twice", where)
            if e.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or e.flag_bits & 1:
                raise InputError("the member is encrypted or not compressed by deflate", where, "deflate")
            if e.file_size > DEFLATE_LIMIT * e.compress_size + 64:
                raise InputError(
                    f"{e.compress_size} bytes cannot unpack to {e.file_size}", where, "what deflate can pack"
                )
            deflated = e.compress_type == zipfile.ZIP_DEFLATED
            out[e.filename] = Member(e.header_offset, e.compress_size, e.file_size, e.CRC, deflated)
        packed = sum(m.packed for m in out.values())
        if packed > size:  # overlapping members could unpack without end
            raise InputError(
                f"the members take {packed} bytes, the file has {size}", str(self.path), "no overlap"
            )
        return out

    def read(self, name: str, size: int, crc32: int | None = None) -> bytes:
        """Return the member ``name``, which must unpack to exactly ``size`` bytes with checksum ``crc32``.

        No more than ``size`` bytes are ever unpacked.

        Raises
        ------
        InputError : missing, truncated, damaged, or of another size or checksum; the message names the member
        """
        where = f"{self.path}: {name}"
        member = self.members.get(name)
        if member is None:
            raise InputError("the archive lacks this member", where)
        data = self._unpack(member, size, where)
        found = zlib.crc32(data)
        if found != member.crc32 or crc32 not in (None, found):
            raise InputError(f"checksum mismatch (found {found:08x}): the data is damaged", where)
        return data

    def _unpack(self, member: Member, size: int, where: str) -> bytes:
        fd = self._file.fileno()
        head = _pread(fd, _LOCAL.size, member.at, where)
        if head[:4] != b"PK\3\4":
            raise InputError("the directory does not point to it", where, "a member")
        name, extra = struct.unpack("<2H", head[26:30])
        packed = _pread(fd, member.packed, member.at + _LOCAL.size + name + extra, where)
        if not member.deflated:
            data, ended = packed, True
        else:
            data, ended = _inflate(packed, size, where)
        if len(data) != size or not ended:
            more = "more than " if len(data) >= size else ""
            raise InputError(
                f"unpacks to {more}{min(len(data), size)} bytes", where, f"{size} as the manifest says"
            )
        return data

    def close(self) -> None:
        """Close the file; nothing can be read after."""
        self._file.close()


def _inflate(packed: bytes, size: int, where: str) -> tuple[bytes, bool]:
    """At most ``size + 1`` bytes of a raw deflate stream, and whether that is all of it."""
    unpacker = zlib.decompressobj(-15)
    try:
        data = unpacker.decompress(packed, size + 1)
    except zlib.error as error:
        raise InputError(f"damaged ({error})", where, "a deflate stream") from None
    return data, unpacker.eof and len(data) <= size


def _pread(fd: int, size: int, at: int, where: str) -> bytes:
    """Return ``size`` bytes from position ``at``."""
    parts: list[bytes] = []
    while size and (part := _one_pread(fd, min(size, 2**30), at, where)):
        parts.append(part)
        size, at = size - len(part), at + len(part)
    if size:
        raise InputError(f"the file ends {size} bytes too early", where, "a complete file")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _one_pread(fd: int, size: int, at: int, where: str) -> bytes:
    try:
        return read_at(fd, size, at)
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), where, "a readable file") from None
