python3 -m venv .venv
.venv/bin/pip install grpcio==1.85.1 grpcio-tools==1.85.1 grpcio-status==1.85.1
