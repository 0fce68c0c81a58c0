from tests.evaluation.conftest import races  # noqa: F401  fixtures
from tests.models.conftest import planted, seasons  # noqa: F401
from tests.models.continual.conftest import f1net, known_season, new_season, pretrained  # noqa: F401
