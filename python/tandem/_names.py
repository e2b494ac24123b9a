"""Whether code asks objects for attributes by names that are not in its text."""

import dis
import types

_WHOLE = {"vars", "__dict__", "dir", "attrgetter", "__getattribute__", "__getstate__"}
_ONE = {"getattr", "hasattr"}


def computes_names(code: types.CodeType) -> bool:
    """True where a name is computed, or may be."""
    if not _WHOLE.isdisjoint(code.co_names):
        return True
    if not _ONE.isdisjoint(code.co_names):
        instructions = list(dis.get_instructions(code))
        for position, instruction in enumerate(instructions):
            if (
                instruction.argval in _ONE
                and instruction.opname.startswith("LOAD_")
                and not _is_given(instructions[position + 1 :])
            ):
                return True
    return any(computes_names(inner) for inner in code.co_consts if isinstance(inner, types.CodeType))


def _is_given(instructions: list[dis.Instruction]) -> bool:
    """Whether the second argument of the call that these lead to is a string in the code's text."""
    depth, given = 0, False
    for instruction in instructions:
        if instruction.opname in ("PRECALL", "CALL") and depth == instruction.arg:
            return given
        if "JUMP" in instruction.opname:
            return False
        before, depth = depth, depth + dis.stack_effect(instruction.opcode, instruction.arg)
        if before == 1 and depth == 2:
            given = instruction.opname == "LOAD_CONST" and isinstance(instruction.argval, str)
        elif depth == 2:
            given = False
    return False
