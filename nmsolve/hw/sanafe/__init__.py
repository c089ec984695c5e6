"""Export to SANA-FE 2.x, a simulator of energy and time of neuromorphic chips (docs/energy.md).

``architecture`` is the chip, ``network`` the traffic, ``export`` writes both and counts what SANA-FE will count. The format was
learnt from SANA-FE's documentation and by running it; no text of it is used here.
"""

from nmsolve.hw.sanafe.export import SanafeExport as SanafeExport
from nmsolve.hw.sanafe.export import export_sanafe as export_sanafe
