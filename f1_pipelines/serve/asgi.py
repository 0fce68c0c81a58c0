"""The application for `uvicorn f1_pipelines.serve.asgi:app`; `openenv.yaml` points here."""
from f1_pipelines.serve.app import create_app
from f1_pipelines.serve.settings import serve_settings

app = create_app(serve_settings())
