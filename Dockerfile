# Debian slim, never Alpine: the embedded store has wheels for glibc only.
FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /opt/backscroll
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY server server
COPY console console
RUN /opt/backscroll/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt .

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /data --no-create-home backscroll \
  && install -d -o backscroll -g backscroll -m 0700 /data
COPY --from=build /opt/backscroll /opt/backscroll
ENV PATH=/opt/backscroll/bin:$PATH PYTHONUNBUFFERED=1

# Binding to all interfaces is refused without authentication. Until there is any to configure,
# run with `-e BACKSCROLL_HOST=127.0.0.1 --network host`.
# BACKSCROLL_REDIS_URL names a Redis; without it the embedded server keeps its data in /data.
ENV BACKSCROLL_HOST=0.0.0.0 BACKSCROLL_PORT=8000 BACKSCROLL_DATA_DIR=/data
USER backscroll
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"BACKSCROLL_PORT\"]}/healthz', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["backscroll"]
CMD ["serve"]
