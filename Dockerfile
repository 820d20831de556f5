# The image holds what the package holds, compiled, and runs as a user that owns nothing in it.
FROM node:24-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
COPY schema ./schema
COPY src ./src
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:24-slim
ENV NODE_ENV=production MILLRACE_ENV=prod MILLRACE_HOST=0.0.0.0 MILLRACE_STORE=sqlite:/data/millrace.db
WORKDIR /app
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY --from=build /build/schema ./schema
COPY package.json LICENSE ./
COPY bin ./bin
# The embedded store, for who runs a single container; a fleet leaves it empty.
RUN mkdir /data && chown node:node /data
VOLUME /data
USER node
EXPOSE 4747
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.MILLRACE_PORT ?? 4747}/health/ready`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "bin/millrace.js"]
CMD ["serve"]
