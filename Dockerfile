# The image: one static binary, nothing else, not root. What goes in decides
# what comes out, to the byte: no times, no paths, no version control in it.
#
# GO is an image with Go, of the machine that builds; the binary is for the
# platform that is asked for.
ARG GO=golang:1.26
FROM --platform=$BUILDPLATFORM $GO AS build
ARG TARGETOS=linux TARGETARCH=amd64 VERSION=dev COMMIT=unknown GOPROXY
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X main.version=$VERSION -X main.commit=$COMMIT" -o /configstamp ./cmd/configstamp

FROM scratch
ARG VERSION=dev COMMIT=unknown
LABEL org.opencontainers.image.title=configstamp \
    org.opencontainers.image.source=https://github.com/configstamp/configstamp \
    org.opencontainers.image.licenses=Apache-2.0 \
    org.opencontainers.image.version=$VERSION \
    org.opencontainers.image.revision=$COMMIT
COPY --from=build /configstamp /configstamp
USER 65532:65532
ENTRYPOINT ["/configstamp"]
