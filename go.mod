module github.com/configstamp/configstamp

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/google/go-cmp v0.7.0
	github.com/prometheus/client_golang v1.23.2
	github.com/spf13/cobra v1.10.1
	github.com/spf13/pflag v1.0.10
	gomodules.xyz/jsonpatch/v2 v2.5.0
	k8s.io/api v0.37.1
	k8s.io/apimachinery v0.37.1
	k8s.io/client-go v0.37.1
	k8s.io/klog/v2 v2.140.0
)
