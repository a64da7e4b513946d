# The image: one static binary, nothing else, not root.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION=dev COMMIT=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath \
    -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /configstamp ./cmd/configstamp

FROM scratch
COPY --from=build /configstamp /configstamp
USER 65532:65532
ENTRYPOINT ["/configstamp"]
