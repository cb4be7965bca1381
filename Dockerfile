# An image of the service without the development packages. It wants a MongoDB of its own: see docker-compose.yml.

FROM node:22-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# No package's install script is needed: what is native comes as a finished program.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:22-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --include=dev --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY scripts scripts
COPY src src
# Installs nothing more: it compiles, and copies what is not compiled.
RUN node scripts/prepare.mjs

FROM node:22-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 DATA_DIR=/data
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist/src dist/src
COPY package.json ./
# What is kept where neither MONGODB_URI nor SECRET is given; it belongs to the user that runs the service.
RUN mkdir /data && chown node:node /data
VOLUME /data
USER node
EXPOSE 8080 1883
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/api/v1`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Run it with --init (compose: init: true), so that no process is left behind when the service ends.
CMD ["node", "--enable-source-maps", "dist/src/main.js"]
