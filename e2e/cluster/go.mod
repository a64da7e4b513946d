module github.com/configstamp/configstamp/e2e/cluster

go 1.26.0

require (
	github.com/google/go-containerregistry v0.22.1
	github.com/spf13/cobra v1.10.2
	golang.org/x/sys v0.46.0
)
