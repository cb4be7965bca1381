# An image of the service: no development packages, no npm, no root, nothing written but what is mounted. It wants a MongoDB
# of its own, see docker-compose.yml. The digest names the very bytes, for every processor the image exists for.
ARG NODE_IMAGE=node:24.18.0-bookworm-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d

FROM ${NODE_IMAGE} AS packages
# A certificate authority in PEM form, for networks that look into TLS. It is trusted while packages are fetched, and no part
# of the image: --build-arg EXTRA_CA="$(cat ca.pem)"
ARG EXTRA_CA=""
ENV NODE_EXTRA_CA_CERTS=/extra-ca.pem
RUN echo "${EXTRA_CA}" > /extra-ca.pem
WORKDIR /app
COPY package.json package-lock.json ./
# No package's install script is needed: what is native comes as a finished program.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE} AS build
ARG EXTRA_CA=""
ENV NODE_EXTRA_CA_CERTS=/extra-ca.pem
RUN echo "${EXTRA_CA}" > /extra-ca.pem
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --include=dev --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY scripts scripts
COPY src src
# Installs nothing more: it compiles, and copies what is not compiled. Tools for trials need packages that are not in the image.
RUN node scripts/prepare.mjs && cd dist/scripts && rm -rf bench device* listen* progress*

FROM ${NODE_IMAGE}
# The service runs without a package manager; one in reach would only serve somebody who broke in.
RUN rm -rf /usr/local/lib/node_modules /opt/yarn* && cd /usr/local/bin && rm -f npx corepack yarn yarnpkg npm
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 OPS_HOST=0.0.0.0 OPS_PORT=9464 DATA_DIR=/data
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY scripts/ops scripts/ops
COPY package.json ./
# What is kept where no SECRET is given, and backups; a volume of a new name belongs to the user that runs the service.
RUN mkdir /data /backups && chown node:node /data /backups
VOLUME /data
USER node
EXPOSE 8080 1883 9464
# Whether the process lives; whether requests are to be sent to it, the balancer asks of /ready.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OPS_PORT}/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
# The service ends in order when it is told to. Run it with --init (compose: init: true), so that nothing is left behind.
CMD ["node", "--enable-source-maps", "dist/src/main.js"]
