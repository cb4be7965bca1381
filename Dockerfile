# The image of Vigil: no development packages, no npm, no root user, and writes only to mounted folders. It needs a MongoDB, see
# docker-compose.yml. The digest pins the exact base image for every processor architecture.
ARG NODE_IMAGE=node:24.18.0-bookworm-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d

FROM ${NODE_IMAGE} AS all-packages
# A certificate authority in PEM form, for networks that inspect TLS. The build trusts it while it downloads packages; the image
# does not contain it: --build-arg EXTRA_CA="$(cat ca.pem)"
ARG EXTRA_CA=""
ENV NODE_EXTRA_CA_CERTS=/extra-ca.pem
RUN echo "${EXTRA_CA}" > /extra-ca.pem
WORKDIR /app
COPY package.json package-lock.json ./
# No install script of a package is needed: native code is prebuilt.
RUN npm ci --include=dev --ignore-scripts --no-audit --no-fund

FROM all-packages AS packages
RUN npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM all-packages AS build
COPY tsconfig.json tsconfig.console.json ./
COPY scripts scripts
COPY src src
# Compiles, and copies files that need no compiling. The command line and benchmarks need packages that the image does not contain.
RUN node scripts/prepare.mjs && rm -rf dist/src/cli dist/scripts/bench

FROM ${NODE_IMAGE}
# Vigil runs without a package manager, which would only help an intruder.
RUN rm -rf /usr/local/lib/node_modules /opt/yarn* && cd /usr/local/bin && rm -f npx corepack yarn yarnpkg npm
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 OPS_HOST=0.0.0.0 OPS_PORT=9464 DATA_DIR=/data
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY scripts/ops scripts/ops
COPY package.json ./
# For the generated secret if SECRET is not set, and for backups. A new volume gets the owner of this folder.
RUN mkdir /data /backups && chown node:node /data /backups
VOLUME /data
USER node
EXPOSE 8080 1883 9464
# Checks whether the process answers. A balancer checks /ready.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OPS_PORT}/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
# SIGTERM stops Vigil in order. Run it with --init (compose: init: true), so that no process is left behind.
CMD ["node", "--enable-source-maps", "--max-semi-space-size=32", "dist/src/main.js"]
