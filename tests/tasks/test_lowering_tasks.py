"""The training step and the prediction of each task and system are whole programs of XLA."""

import pytest

from tests.tasks import lowering, lowering_cases

pytestmark = pytest.mark.slow

# For the time it takes, `make test-xla` has the others.
QUICKER = {"triviaqa longformer", "numerical_reasoning gmat", "summarization led"}
# Models that generate: their loops read variables, which cannot become constants.
GENERATING = {name for name in lowering_cases.TASKS if name.startswith(("numerical", "summ"))}
NAMES = [
    pytest.param(name, marks=[] if name in QUICKER else [pytest.mark.xla])
    for name in lowering_cases.TASKS
]


def program_of(strategy):
    (program,) = strategy.programs
    assert not lowering.problems_of_operations(program.traced().graph)
    assert not lowering.problems_of_text(program.stablehlo())
    return program


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow_cases(1)
def test_a_training_step_is_a_program_without_its_host(name, tmp_path):
    program_of(lowering.lower_training(lowering_cases.TASKS[name](tmp_path)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow_cases(1)
def test_a_prediction_is_a_program_without_its_host(name, tmp_path):
    program = program_of(lowering.lower_prediction(lowering_cases.TASKS[name](tmp_path)))
    if name not in GENERATING:
        assert not lowering.problems_of_text(program.stablehlo_of_constants("GPU"))
