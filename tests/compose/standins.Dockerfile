# Stand-ins for the published images of the balancer, Prometheus and Grafana, where no registry can be reached.
# The first two are the real programs from Debian; Grafana is not in Debian, so its place is held by a file server.
ARG BASE_IMAGE=python:3.11-slim

FROM ${BASE_IMAGE} AS packages
# HAProxy from the next release of Debian (3.0): the one of the base image (2.6) is far older than the published image.
# hadolint ignore=DL3008
RUN sed s/bookworm/trixie/ /etc/apt/sources.list > /etc/apt/sources.list.d/trixie.list \
    && apt-get update \
    && apt-get install --yes --no-install-recommends prometheus wget \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends -t trixie haproxy \
    && rm -rf /var/lib/apt/lists/* \
    && install -d -o nobody -g nogroup /prometheus

FROM packages AS haproxy
USER 65534:65534
CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]

FROM packages AS prometheus
USER 65534:65534
VOLUME /prometheus
ENTRYPOINT ["prometheus"]

FROM packages AS grafana
WORKDIR /srv/api
RUN echo '{"database": "ok"}' > health
USER 65534:65534
CMD ["python", "-m", "http.server", "3000", "--directory", "/srv"]
