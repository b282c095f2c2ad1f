# hermes-gateway in a container: see docs/container.md. Nothing in it can be written but /data and /tmp.
#
#   docker build -t hermes-gateway .
#   docker build -t hermes-gateway --build-arg EXTRAS=media,otel .
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends binutils ca-certificates python3 python3-venv
WORKDIR /source
COPY bootstrap.lock ./
RUN python3 -m venv /tools \
    && /tools/bin/pip install -q --no-cache-dir --no-deps --require-hashes -r bootstrap.lock \
    && python3 -m venv --without-pip /opt/hermes-gateway
ENV UV_SYSTEM_CERTS=1 UV_PYTHON=/opt/hermes-gateway/bin/python UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1
COPY requirements.lock extras.lock ./
RUN /tools/bin/uv pip install -q --require-hashes -r requirements.lock
COPY . .
RUN /tools/bin/uv pip install -q --no-deps --build-constraints bootstrap.lock . \
    && touch /opt/hermes-gateway/hermes-gateway-image
ARG EXTRAS
RUN [ -z "$EXTRAS" ] || /tools/bin/uv pip install -q -c extras.lock --build-constraints bootstrap.lock ".[$EXTRAS]"
# What debuggers read in the libraries is a tenth of the image; nothing here tests them, colours code, or is Windows.
RUN find /opt/hermes-gateway -name '*.so' -exec strip --strip-unneeded {} + \
    && rm -r /opt/hermes-gateway/lib/python3*/site-packages/*/tests \
    && rm -r /opt/hermes-gateway/lib/python3*/site-packages/pygments/lexers \
    && rm -r /opt/hermes-gateway/lib/python3*/site-packages/discord/bin
# For the packages of hooks, which lie in the volume: pip as it comes, packed, which is a seventh of it unpacked.
RUN cp /usr/share/python-wheels/pip-*.whl /opt/hermes-gateway/lib/pip.whl \
    && echo /opt/hermes-gateway/lib/pip.whl > "$(echo /opt/hermes-gateway/lib/python3*/site-packages)/pip.pth"

FROM ${BASE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/* /usr/lib/python3*/pydoc_data /usr/lib/python3*/test \
    && useradd --uid 10001 --user-group --home-dir /data --shell /usr/sbin/nologin hermes-gateway \
    && install -d -o 10001 -g 10001 -m 700 /data
COPY --from=build /opt/hermes-gateway /opt/hermes-gateway
# The home is below the volume, so that it is the gateway's alone, whoever the volume belongs to. The port is for those
# who come through the host: 172.17.0.1 is the host in the network that Docker gives a container of its own.
ENV PATH=/opt/hermes-gateway/bin:/usr/local/bin:/usr/bin:/bin \
    HERMES_HOME=/data/home \
    GATEWAY_WEB_LISTEN=0.0.0.0:8730 \
    GATEWAY_WEB_TRUSTED_PROXIES=172.17.0.1 \
    GATEWAY_WEB_URL=http://127.0.0.1:8730
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8730
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python3", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8730/health', timeout=8)"]
# It is process 1 itself: it ends its own, and lets go of what others leave behind.
ENTRYPOINT ["hermes-gateway"]
CMD ["run"]
