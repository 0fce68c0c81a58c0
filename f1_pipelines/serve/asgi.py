"""The application for `uvicorn f1_pipelines.serve.asgi:app`, as `openenv.yaml` names it."""
from f1_pipelines.serve.app import create_app
from f1_pipelines.serve.settings import serve_settings

app = create_app(serve_settings())
