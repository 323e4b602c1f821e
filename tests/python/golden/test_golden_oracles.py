# SPDX-License-Identifier: Apache-2.0
"""Every golden operation has an oracle outside of golden, and a test that holds them together.

An operation is a public function of the integer references (`golden/*.py`), an opcode or vector
operation of the instruction-level model, an operation of the command port, an instruction of the
coprocessor, or a public function of its numbers. A new one fails here
until the table names its oracle, and the test in which the two meet.
"""

from __future__ import annotations

import pytest

from spec.isa import Opcode, VecOp
from spec.isa.cop_generated import CopOp
from spec.regs import CmdOp
from tests.python.graph import sources
from tests.python.graph.sources import ROOT

OUTSIDE = {
    "integers": "exact Python integers, by the formulas of the specification",
    "fractions": "exact fractions",
    "decimal": "Python's decimal arithmetic, to 130 digits",
    "math": "Python's math in float64",
    "numpy": "numpy, in int64 or float64",
    "ml_dtypes": "number formats of ml_dtypes",
    "torch": "PyTorch in float64",
    "transformers": "decoders of transformers in float64",
}
"""Oracles that golden has no part in; each but the first is the package that its test must use."""
COPROCESSOR = ("floats", "functions")
"""Modules of golden/coprocessor whose public functions are operations; `arrays` has the same ones,
held against them one by one."""
NO_OPERATIONS = {"golden.contribution": "judges data, and computes nothing that a chip does"}
"""Modules of golden/*.py without an operation, and why."""
ORACLES = {
    ("fractions", "test_golden_fixed::test_rs_is_exhaustively_round_half_up"): "golden.fixed.rs",
    ("integers", "test_golden_fixed::test_sat"): (
        "golden.fixed.limits golden.fixed.sat golden.fixed.sat8 golden.fixed.sat16"
    ),
    ("integers", "test_golden_fixed::test_msb_is_floor_log2"): "golden.fixed.msb",
    ("integers", "test_golden_fixed::test_multiply_is_exact_or_raises"): "golden.fixed.multiply",
    ("integers", "test_golden_fixed::test_as_int64_refuses_what_does_not_fit"): (
        "golden.fixed.as_int64"
    ),
    ("integers", "test_golden_fixed::test_wrap32"): "golden.fixed.wrap32",
    ("ml_dtypes", "test_golden_formats::test_mx"): "golden.formats.decode golden.formats.factor",
    ("integers", "test_golden_formats::test_layout"): (
        "golden.formats.expand golden.formats.share_beats golden.formats.side_beats"
        " golden.formats.element_bits"
    ),
    ("math", "test_golden_gelu::test_gelu_by_integrating_the_normal_density"): "golden.gelu.gelu",
    ("math", "test_golden_gelu::test_every_entry_against_erf"): "golden.gelu.gelu_table",
    ("integers", "test_golden_gelu::test_the_table_is_indexed_by_the_bit_pattern"): (
        "golden.gelu.apply_table"
    ),
    ("integers", "test_golden_gemm::test_sums_are_exact"): (
        "golden.gemm.accumulate golden.gemm.combined"
    ),
    ("integers", "test_golden_gemm::test_depthwise_sums_are_exact"): "golden.gemm.depthwise",
    ("fractions", "test_golden_gemm::test_requantised_results"): (
        "golden.gemm.gemm golden.gemm.postprocess golden.gemm.per_tensor golden.gemm.per_channel"
    ),
    ("numpy", "test_golden_gemm::test_row_factors_divide_by_the_sum"): "golden.gemm.per_row",
    ("integers", "test_golden_gemm::test_argmax_over_pieces"): "golden.gemm.running_argmax",
    ("math", "test_golden_layernorm::test_inverse_sqrt_over_every_value"): (
        "golden.layernorm.inverse_sqrt"
    ),
    ("math", "test_golden_layernorm::test_rows_against_float64"): (
        "golden.layernorm.normalized golden.layernorm.scaled golden.layernorm.norm8"
        " golden.layernorm.norm16 golden.layernorm.output_bound"
    ),
    ("fractions", "test_golden_requantize::test_requantize_is_one_rounding_and_one_saturation"): (
        "golden.requantize.requantize"
    ),
    ("integers", "test_golden_requantize::test_requantize_widths"): (
        "golden.requantize.requantize8 golden.requantize.requantize16"
    ),
    ("math", "test_golden_requantize::test_factor_is_normalised_and_near"): (
        "golden.requantize.factor"
    ),
    ("integers", "test_golden_rope::test_full_range_tables_by_the_formula"): "golden.rope.rotate",
    ("numpy", "test_golden_softmax::test_numerator_over_every_distance"): (
        "golden.softmax.numerator"
    ),
    ("numpy", "test_golden_softmax::test_reciprocal_over_every_sum"): "golden.softmax.reciprocal",
    ("integers", "test_golden_softmax::test_visible_in_a_window"): "golden.softmax.visible",
    ("numpy", "test_golden_softmax::test_rows_against_float64"): (
        "golden.softmax.numerators8 golden.softmax.numerators16"
    ),
    ("numpy", "test_golden_softmax::test_probabilities_against_float64"): (
        "golden.softmax.probabilities golden.softmax.probability_bound"
    ),
    ("fractions", "test_golden_tables::test_exp_table_is_the_nearest_integer"): (
        "golden.tables.exp_table"
    ),
    ("fractions", "test_golden_tables::test_reciprocal_table_is_the_nearest_integer"): (
        "golden.tables.reciprocal_table"
    ),
    ("fractions", "test_golden_tables::test_rsqrt_table_is_the_nearest_integer"): (
        "golden.tables.rsqrt_table"
    ),
    ("integers", "test_golden_vec::test_pairs_of_integers"): "golden.vec.*",
    ("fractions", "test_golden_vec::test_mul"): "golden.vec.mul",
    ("fractions", "test_golden_vec::test_scale_shift"): "golden.vec.scale_shift",
    ("integers", "test_golden_vec::test_clamp_relu_copy"): (
        "golden.vec.clamp golden.vec.relu golden.vec.copy"
    ),
    ("numpy", "test_golden_decoder::test_every_stage_against_float64"): (
        "golden.decoder.block golden.decoder.product golden.decoder.norm golden.decoder.linear8"
        " golden.decoder.linear16 golden.decoder.residual_add golden.decoder.gated"
        " golden.decoder.projected golden.decoder.part_norm"
        " golden.decoder.split_heads golden.decoder.rotated golden.decoder.attention_scores"
        " golden.decoder.attention_weights golden.decoder.attention_context"
    ),
    ("integers", "test_golden_decoder::test_a_wide_block_by_integers"): (
        "golden.decoder.coarse golden.decoder.bent golden.decoder.streamed"
    ),
    ("numpy", "test_golden_decoder::test_embedding"): "golden.decoder.embed",
    ("transformers", "oracles/test_golden_torch::test_whole_network"): (
        "golden.decoder.run golden.decoder.forward_trace"
    ),
    ("numpy", "test_golden_decoder::test_the_network_is_near_the_real_one"): (
        "golden.decoder.forward golden.decoder.forward_rows golden.decoder.residuals"
    ),
    ("numpy", "test_golden_decoder::test_a_text_behind_a_constant_position"): (
        "golden.decoder.beginning"
    ),
    ("numpy", "test_golden_session::test_lowest_token_of_equals"): "golden.session.greedy",
    ("numpy", "test_golden_session::test_generation"): "golden.session.generate",
    ("numpy", "test_golden_machine::test_dma_load"): "spec.isa.Opcode.DMA_LOAD",
    ("numpy", "test_golden_machine::test_dma_store"): "spec.isa.Opcode.DMA_STORE",
    ("numpy", "test_golden_machine_formulas::test_gemm"): "spec.isa.Opcode.GEMM",
    ("numpy", "test_golden_vec::test_instruction"): "spec.isa.Opcode.VEC spec.isa.VecOp.*",
    ("numpy", "test_golden_machine::test_table_lookup_in_place"): (
        "spec.isa.VecOp.TABLE spec.isa.Opcode.GELU spec.isa.Opcode.SILU"
    ),
    ("numpy", "test_golden_machine_formulas::test_softmax"): "spec.isa.Opcode.SOFTMAX",
    ("numpy", "test_golden_machine_formulas::test_norm"): (
        "spec.isa.Opcode.LAYERNORM spec.isa.Opcode.RMSNORM"
    ),
    ("numpy", "test_golden_machine_formulas::test_rope"): "spec.isa.Opcode.ROPE",
    ("numpy", "test_golden_machine_kv::test_append_places_every_byte"): "spec.isa.Opcode.KV_APPEND",
    ("numpy", "test_golden_machine_kv::test_read_copies_rows_of_positions"): (
        "spec.isa.Opcode.KV_READ"
    ),
    ("numpy", "test_golden_machine_loop::test_embed"): "spec.isa.Opcode.EMBED",
    ("numpy", "test_golden_machine_loop::test_a_loop_goes_round_and_counts"): (
        "spec.isa.Opcode.ARGMAX spec.isa.Opcode.LOOP"
    ),
    ("numpy", "test_golden_machine_control::test_bases_and_set"): "spec.isa.Opcode.SET",
    (
        "integers",
        "test_golden_machine_control::test_ends",
    ): "spec.isa.Opcode.END spec.isa.Opcode.NOP",
    ("numpy", "test_golden_machine_control::test_a_prefix_serves_one_instruction"): (
        "spec.isa.Opcode.PFX"
    ),
    ("integers", "test_golden_machine_races::test_a_barrier_leaves_the_youngest_n_open"): (
        "spec.isa.Opcode.BARRIER"
    ),
    ("fractions", "test_golden_coprocessor_floats::test_nearest_float32"): (
        "golden.coprocessor.floats.nearest_float32"
    ),
    ("numpy", "test_golden_coprocessor_floats::test_arithmetic_is_that_of_numpy"): (
        "golden.coprocessor.floats.add_float32 golden.coprocessor.floats.subtract_float32"
        " golden.coprocessor.floats.multiply_float32 golden.coprocessor.floats.divide_float32"
    ),
    ("numpy", "test_golden_coprocessor_floats::test_maximum_and_relu"): (
        "golden.coprocessor.floats.maximum_float32 golden.coprocessor.floats.relu_float32"
        " golden.coprocessor.floats.is_nan32"
    ),
    ("fractions", "test_golden_coprocessor_floats::test_double_sums_round_once"): (
        "golden.coprocessor.floats.add_double golden.coprocessor.floats.multiply_add_double"
        " golden.coprocessor.floats.double_of_float32"
    ),
    ("numpy", "test_golden_coprocessor_floats::test_conversions"): (
        "golden.coprocessor.floats.float32_value golden.coprocessor.floats.double_value"
        " golden.coprocessor.floats.double_bits golden.coprocessor.floats.float32_bits"
        " golden.coprocessor.floats.float32_of_double"
    ),
    ("decimal", "test_golden_coprocessor_functions::test_exp_float32_is_nearest"): (
        "golden.coprocessor.functions.exp_float32"
    ),
    ("decimal", "test_golden_coprocessor_functions::test_gelu_float32_is_nearest"): (
        "golden.coprocessor.functions.gelu_float32"
    ),
    ("fractions", "test_golden_coprocessor_functions::test_rsqrt_float32_is_nearest"): (
        "golden.coprocessor.functions.rsqrt_float32"
    ),
    ("decimal", "test_golden_coprocessor_functions::test_exp_q16_16_is_nearest"): (
        "golden.coprocessor.functions.exp_q16_16"
    ),
    ("integers", "test_golden_coprocessor_functions::test_rsqrt_q16_16_is_nearest"): (
        "golden.coprocessor.functions.rsqrt_q16_16"
    ),
    ("math", "test_golden_coprocessor_functions::test_gelu_int8_is_nearest"): (
        "golden.coprocessor.functions.gelu_int8"
    ),
    ("integers", "test_golden_coprocessor_functions::test_signed32"): (
        "golden.coprocessor.functions.signed32"
    ),
    ("integers", "test_golden_coprocessor_instructions::test_scalars"): (
        "spec.isa.cop_generated.CopOp.MACC spec.isa.cop_generated.CopOp.RELU"
        " spec.isa.cop_generated.CopOp.QMUL spec.isa.cop_generated.CopOp.CLAMP"
        " spec.isa.cop_generated.CopOp.RSTACC"
    ),
    ("decimal", "test_golden_coprocessor_instructions::test_scalars"): (
        "spec.isa.cop_generated.CopOp.GELU spec.isa.cop_generated.CopOp.FGELU"
    ),
    ("fractions", "test_golden_coprocessor_instructions::test_scalars"): (
        "spec.isa.cop_generated.CopOp.FRSQRT"
    ),
    ("numpy", "test_golden_coprocessor_instructions::test_scalars"): (
        "spec.isa.cop_generated.CopOp.FMACC spec.isa.cop_generated.CopOp.FRELU"
        " spec.isa.cop_generated.CopOp.FRSTACC"
    ),
    ("integers", "test_golden_coprocessor_instructions::test_vectors"): (
        "spec.isa.cop_generated.CopOp.VMUL spec.isa.cop_generated.CopOp.VMAC"
        " spec.isa.cop_generated.CopOp.VREDUCE spec.isa.cop_generated.CopOp.VMAX"
        " spec.isa.cop_generated.CopOp.VRSQRT"
    ),
    ("decimal", "test_golden_coprocessor_instructions::test_vectors"): (
        "spec.isa.cop_generated.CopOp.VEXP spec.isa.cop_generated.CopOp.FVEXP"
        " spec.isa.cop_generated.CopOp.FVGELU"
    ),
    ("fractions", "test_golden_coprocessor_instructions::test_vectors"): (
        "spec.isa.cop_generated.CopOp.FVRSQRT"
    ),
    ("numpy", "test_golden_coprocessor_instructions::test_vectors"): (
        "spec.isa.cop_generated.CopOp.FVMUL spec.isa.cop_generated.CopOp.FVSUB_SCALAR"
        " spec.isa.cop_generated.CopOp.FVDIV spec.isa.cop_generated.CopOp.FVADD"
        " spec.isa.cop_generated.CopOp.FVSUB spec.isa.cop_generated.CopOp.FVRELU"
        " spec.isa.cop_generated.CopOp.FVMAC spec.isa.cop_generated.CopOp.FVREDUCE"
        " spec.isa.cop_generated.CopOp.FVMAX"
    ),
    ("numpy", "test_golden_coprocessor_instructions::test_vector_registers"): (
        "spec.isa.cop_generated.CopOp.LDVEC spec.isa.cop_generated.CopOp.STVEC"
    ),
    ("numpy", "test_golden_command_scalar::test_words"): (
        "spec.regs.CmdOp.ADD spec.regs.CmdOp.SUB spec.regs.CmdOp.MUL_LO spec.regs.CmdOp.MAC_S16"
        " spec.regs.CmdOp.DOT4_S8 spec.regs.CmdOp.MAX_U32 spec.regs.CmdOp.MIN_U32"
        " spec.regs.CmdOp.DOT8_S4 spec.regs.CmdOp.RELU4_S8 spec.regs.CmdOp.DOT16_S2"
    ),
    ("ml_dtypes", "test_golden_command_scalar::test_fp8_sums"): "spec.regs.CmdOp.DOT4_FP8_E4M3",
    ("math", "test_golden_command_scalar::test_exp2"): "spec.regs.CmdOp.EXP2_NEG_Q0_8",
    ("numpy", "test_golden_command_scalar::test_sparse_metadata"): "spec.regs.CmdOp.SDOT4_S4_2_4",
    ("numpy", "test_golden_command_tiles::test_gemm"): (
        "spec.regs.CmdOp.GEMM_S8 spec.regs.CmdOp.GEMM_S4"
    ),
    ("numpy", "test_golden_command_tiles::test_vrelu"): "spec.regs.CmdOp.VRELU_S8",
}
"""Operations, separated by spaces, by their oracle and the test below tests/python/ (or tests/).

`golden.vec.*` stands for those of golden.vec that no other row names.
"""


def _operations() -> set[str]:
    """Find all operations."""
    modules = {f"golden.{path.stem}" for path in (ROOT / "golden").glob("[a-z]*.py")}
    modules |= {f"golden.coprocessor.{name}" for name in COPROCESSOR}
    found = {name for module in modules - NO_OPERATIONS.keys() for name in sources.public(module)}
    for enum, home in (
        (Opcode, "spec.isa"),
        (VecOp, "spec.isa"),
        (CmdOp, "spec.regs"),
        (CopOp, "spec.isa.cop_generated"),
    ):
        found |= {f"{home}.{enum.__name__}.{member.name}" for member in enum}
    return found


def _named(rows: list[str], found: set[str]) -> dict[str, str]:
    """Return the row of each operation; the rest of a `.*` once the others are known."""
    table: dict[str, str] = {}
    for row in rows:
        for operation in row.split():
            if not operation.endswith(".*"):
                assert operation not in table, f"{operation} stands in the table twice"
                table[operation] = row
    for row in rows:
        for rest in (word[:-1] for word in row.split() if word.endswith(".*")):
            table |= {name: row for name in found - table.keys() if name.startswith(rest)}
    return table


def _table() -> dict[str, tuple[str, str]]:
    """Return oracle and full name of the test of each operation."""
    tests = {operations: by for by, operations in ORACLES.items()}
    table = {}
    for operation, row in _named(list(ORACLES.values()), _operations()).items():
        by, test = tests[row]
        file, _, function = test.partition("::")
        (path,) = (ROOT / "tests").rglob(f"{file}.py")
        place = f"{path.relative_to(ROOT / 'tests').with_suffix('')}::{function}"
        table[operation] = (by, f"tests.{place.replace('/', '.').replace('::', '.')}")
    return table


TABLE = _table()


def test_every_operation_names_its_oracle() -> None:
    """The table has each operation once, and nothing else."""
    found = _operations()
    assert not found - TABLE.keys(), f"without an oracle: {sorted(found - TABLE.keys())}"
    assert not TABLE.keys() - found, f"no operations: {sorted(TABLE.keys() - found)}"


@pytest.mark.parametrize("operation", sorted(TABLE))
def test_operation_meets_its_oracle(operation: str) -> None:
    """The named test is there, and uses both the operation and the oracle.

    Of an instruction or an operation of the command port it must not ask golden's functions.
    """
    by, test = TABLE[operation]
    inside = operation.rpartition(".")[0]
    used = sources.used_by(test, inside)
    assert operation in used, f"{test} does not use {operation}"
    assert by in OUTSIDE, f"given {by}, allowed {', '.join(OUTSIDE)}"
    others = {name for name in used & TABLE.keys() if name.startswith("golden.")}
    assert operation.startswith("golden.") or not others, f"{test} asks golden: {others}"
    packages = {name.partition(".")[0] for name in used}
    assert by == "integers" or by in packages, f"{test} does not use {by}"


def test_what_a_test_uses() -> None:
    """A helper of a test counts as the test does; what golden calls elsewhere does not."""
    used = sources.used_by("tests.python.golden.test_golden_vec.test_mul", "golden.vec")
    assert {"golden.vec.mul", "fractions.Fraction"} <= used
    assert "golden.vec.add" not in used
    with pytest.raises(LookupError, match=r"test_golden_vec\.test_gone"):
        sources.used_by("tests.python.golden.test_golden_vec.test_gone", "golden.vec")
