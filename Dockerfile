# Build: a static binary; the image's Go must be at least the one go.mod names.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY client/go.mod client/go.sum client/
RUN go mod download
COPY . .
# Without it, the one in VERSION.
ARG VERSION=
ARG COMMIT=unknown
ARG DATE=unknown
# timetzdata: the final image has no time zone files.
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags timetzdata,grpcnotrace,nopgxregisterdefaulttypes \
      -ldflags "-s -w -X main.version=${VERSION:-$(cat VERSION)} -X main.commit=${COMMIT} -X main.date=${DATE}" \
      -o /out/castellan ./cmd/castellan \
 && mkdir -m 700 /out/data

# Run: nothing but the binary and the certificates of public authorities, as a
# user without a name. The file system can be read-only (docker run --read-only);
# only /data is written, and with PostgreSQL and a mounted master key not even that.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/castellan /castellan
COPY --from=build /src/LICENSE /src/cmd/castellan/THIRD_PARTY_NOTICES /licenses/
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
ENV CASTELLAN_DATA_DIR=/data \
    CASTELLAN_HTTP_ADDR=0.0.0.0:8080
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/castellan"]
CMD ["serve"]
