# One image for every role: subn-curator, subn-party and subn. What it holds is pinned by hash: here and in the lock files.
# Where no registry can be reached, SUBN_BASE names a stand-in for the base.
ARG SUBN_BASE=docker.io/library/python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7

FROM ${SUBN_BASE} AS programs
WORKDIR /src
# No time of the build gets into the wheel (docs/offline.md).
ENV SOURCE_DATE_EPOCH=315532800
COPY requirements-build.lock requirements.lock ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python -m venv --without-pip /opt/dp-subn \
 && python -m venv /opt/tools \
 && /opt/tools/bin/pip install --quiet --require-hashes --only-binary :all: -r requirements-build.lock \
 && /opt/tools/bin/pip --python /opt/dp-subn install --quiet --no-compile --require-hashes --only-binary :all: -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY crypto crypto
COPY protocol protocol
COPY party party
COPY curator curator
# The packages' own tests are not run here, and nothing imports them.
RUN /opt/tools/bin/pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/tools/bin/pip --python /opt/dp-subn install --quiet --no-compile --no-index --no-deps /wheels/*.whl \
 && find /opt/dp-subn -type d -name tests -prune -exec rm -r {} + \
 # Of Arrow, Parquet files alone are read and written here: its network protocol and clouds are a third of its size.
 && cd /opt/dp-subn/lib/python3.*/site-packages/pyarrow \
 && rm -r include libarrow_flight* libarrow_python_flight* libarrow_s3* _flight* _s3fs* _gcsfs* _azurefs* _hdfs* _orc* \
 && find . -name '*.p[yx]x' -o -name '*.px[di]' | xargs rm \
 && cd / && /opt/dp-subn/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/dp-subn/lib \
 && find /opt/dp-subn -exec touch -h -d 1980-01-01 {} +

# The base without what only installing software needs; licences and the list of packages stay, for scanners.
FROM ${SUBN_BASE} AS system
RUN rm -rf /var/cache/* /var/lib/apt/lists/* /var/log/* /root/.cache \
    /usr/share/locale /usr/share/man /usr/share/info \
    /usr/local/lib/python3.*/site-packages /usr/local/lib/python3.*/ensurepip /usr/local/lib/python3.*/test \
    /usr/lib/python3.*/ensurepip /usr/lib/python3/dist-packages /usr/share/python-wheels \
    /usr/bin/pip* /usr/local/bin/pip* \
 && mkdir -p /usr/share/doc && find /usr/share/doc -type f ! -name copyright -delete \
 && find / -xdev -perm /6000 -type f -exec chmod a-s {} + \
 # Compiled code that is true whatever the time of its source: nobody can write here.
 && cd / && python -m compileall -q -f --invalidation-mode unchecked-hash \
      "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
 # Where volumes come to lie: an empty volume takes its owner from here.
 && mkdir -p /var/lib/dp-subn /data /desk /operator /hospitals/1/home /hospitals/1/data \
      /hospitals/2/home /hospitals/2/data /hospitals/3/home /hospitals/3/data \
 && chmod 700 /var/lib/dp-subn /data /desk /operator /hospitals/*/* \
 && chown -R 10001:10001 /var/lib/dp-subn /data /desk /operator /hospitals \
 && find /bin /boot /etc /home /lib* /media /mnt /opt /root /sbin /srv /usr /var /data /desk /operator /hospitals \
      -xdev ! -path /etc/resolv.conf ! -path '/etc/host*' -exec touch -h -d 1980-01-01 {} +

FROM scratch
COPY --from=system / /
COPY --from=programs /opt/dp-subn /opt/dp-subn
ENV PATH=/opt/dp-subn/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    SUBN_CURATOR_HOME=/var/lib/dp-subn \
    SUBN_PARTY_HOME=/var/lib/dp-subn
USER 10001:10001
WORKDIR /desk
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["sh", "-c", "subn-curator ready || subn-party ready"]
CMD ["subn", "--help"]
