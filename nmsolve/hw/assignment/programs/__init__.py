"""Programs of an assignment (M3.10): one ONNX model per piece, a manifest, a runner, formats of others."""
