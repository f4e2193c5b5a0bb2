"""The lean GGUF reader against the gguf package's own."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference.errors import CorruptFile, UnsupportedArchitecture
from inference.weights.gguf import GgufFile
from tests.tiny_gguf import make_tiny_gguf

QUANTISABLE = ("F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
K_QUANTS = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS")


@pytest.mark.parametrize("kind", ("F32", *QUANTISABLE))
def test_same_values_and_metadata_as_the_gguf_package(tmp_path: Path, kind: str) -> None:
    path = make_tiny_gguf(tmp_path / "tiny.gguf", kind=kind)
    reader, ours = gguf.GGUFReader(path), GgufFile(path)
    assert list(ours.tensors) == [tensor.name for tensor in reader.tensors]
    for tensor in reader.tensors:
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        found = ours.read(tensor.name)
        assert found.dtype == np.float32
        assert found.shape == tuple(tensor.shape[::-1].tolist())
        np.testing.assert_array_equal(found, expected)
        if found.ndim == 2:
            np.testing.assert_array_equal(ours.rows(tensor.name, 3, 30), expected[3:30])
    fields = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    assert list(ours.metadata) == list(fields)
    for name, value in fields.items():
        found = ours.metadata[name]
        assert (found.tolist() if isinstance(found, np.ndarray) else found) == value, name


@pytest.mark.parametrize("kind", K_QUANTS)
def test_block_types_that_only_llama_cpp_can_write(tmp_path: Path, kind: str) -> None:
    quantised = gguf.GGMLQuantizationType[kind]
    rng = np.random.default_rng(1)
    rows, columns = 300, 512
    row_bytes = gguf.quants.quant_shape_to_byte_shape((rows, columns), quantised)[1]
    data = rng.integers(0, 256, (rows, row_bytes), dtype=np.uint8)
    path = tmp_path / "k.gguf"
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_tensor("t", data, raw_dtype=quantised)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with np.errstate(all="ignore"):  # random bytes make infinite scales
        expected = gguf.quants.dequantize(data, quantised)
        found = GgufFile(path)
        assert found.tensors["t"].shape == (rows, columns)
        np.testing.assert_array_equal(found.read("t"), expected)
        np.testing.assert_array_equal(found.rows("t", 129, 260), expected[129:260])


@pytest.mark.parametrize("share", (0.001, 0.01, 0.2, 0.5, 0.9, 0.9999))
def test_truncated_file_is_named(tmp_path: Path, share: float) -> None:
    path = make_tiny_gguf(tmp_path / "tiny.gguf")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CorruptFile) as caught:
        GgufFile(path)
    assert "tiny.gguf" in caught.value.message
    assert caught.value.next_step


def test_other_formats_and_versions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    for data in (b"", b"PK\x03\x04 a zip archive", b"GGUF" + struct.pack("<I", 1) + bytes(16)):
        path.write_bytes(data)
        with pytest.raises(CorruptFile):
            GgufFile(path)


def test_unknown_tensor_type_is_named(tmp_path: Path) -> None:
    path = make_tiny_gguf(tmp_path / "tiny.gguf")
    data = bytearray(path.read_bytes())
    name = b"token_embd.weight"
    at = data.index(name) + len(name) + 4 + 2 * 8
    data[at : at + 4] = struct.pack("<I", 199)
    path.write_bytes(data)
    with pytest.raises(UnsupportedArchitecture, match="199"):
        GgufFile(path)


def _string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def _file(field: bytes, shape: tuple[int, ...] = (32,)) -> bytes:
    """One metadata field and one tensor."""
    tensor = _string(b"t") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + field + tensor + bytes(4096)


_ALIGNMENT = _string(b"general.alignment")
_DEEP = struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 100_000


@pytest.mark.parametrize(
    "data",
    [
        _file(_ALIGNMENT + struct.pack("<II", 4, 0)),
        _file(_ALIGNMENT + struct.pack("<I", 8) + _string(b"wide")),
        _file(_ALIGNMENT + struct.pack("<IIQ", 9, 8, 1) + _string(b"32")),
        _file(_string(b"x") + _DEEP),
        _file(_string(b"x") + struct.pack("<II", 4, 0), (32, 0)),
    ],
    ids=["no alignment", "words for alignment", "a list for alignment", "lists in lists", "an empty tensor"],
)
def test_what_no_writer_writes_is_named_as_damage(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(data)
    with pytest.raises(CorruptFile, match=r"odd\.gguf is damaged"):
        GgufFile(path).read("t")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_tiny_gguf(tmp_path_factory.mktemp("sound") / "tiny.gguf").read_bytes()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(4, 4000), value=st.integers(0, 255))
def test_damaged_header_never_ends_in_a_foreign_error(
    sound: bytes, tmp_path: Path, at: int, value: int
) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(sound[:at] + bytes((value,)) + sound[at + 1 :])
    try:
        file = GgufFile(path)
        for name in list(file.tensors)[:3]:
            file.read(name)
    except (CorruptFile, UnsupportedArchitecture):
        pass
