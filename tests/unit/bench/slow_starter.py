"""A server as a process: it listens at once, says SERVING after half a second, and stops on SIGTERM."""

import argparse
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from conftest import Server
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from dragoman.v1 import translation_pb2_grpc

parser = argparse.ArgumentParser()
parser.add_argument("--address")
parser.add_argument("--metrics-address")
arguments = parser.parse_args()
stopped = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopped.set())
server = grpc.server(ThreadPoolExecutor(max_workers=2))
health_servicer = health.HealthServicer()
health_servicer.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
translation_pb2_grpc.add_TranslationServicer_to_server(Server(), server)
server.add_insecure_port(arguments.address)
server.start()
stopped.wait(0.5)
health_servicer.set("", health_pb2.HealthCheckResponse.SERVING)
stopped.wait()
server.stop(grace=None).wait()
