# Serves an export, or trains; without root. Needs the network once, for Python's packages.
#   docker build --tag etcmodel .
#   docker run --publish 8501:8501 --volume ./export:/model:ro etcmodel
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir=/wheels .

FROM python:3.12-slim
# What is installed beside the core: `--build-arg EXTRAS=text,train,plots` for training.
ARG EXTRAS=text,serve
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[${EXTRAS}]" \
    && useradd --create-home --uid 1000 etcmodel
USER 1000
WORKDIR /home/etcmodel
ENV PYTHONUNBUFFERED=1
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=3m \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/healthz', timeout=4)"]
ENTRYPOINT ["etcmodel"]
CMD ["serve", "--model_dir=/model", "--host=0.0.0.0", "--log_format=json"]
