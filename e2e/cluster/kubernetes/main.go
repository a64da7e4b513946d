// Command kubernetes is a whole Kubernetes in one program: etcd, the control plane, the node and kubectl, as they are
// upstream and linked from upstream's own packages.
//
// Which of them it is, it takes from the name it is called by (a link named kube-apiserver is an API server), or, when
// that name says nothing, from its first argument. It exists because tests must not depend on a registry or on
// prebuilt binaries; it must hold no code of its own beyond that choice. Start reading at components.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// component runs one upstream program; os.Args is what that program expects, and the result is the exit code.
type component func() int

// components is every program in here, by the name upstream gives its binary.
func components() map[string]component {
	return map[string]component{
		"etcd":                    runEtcd,
		"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
		"kube-controller-manager": func() int { return cli.Run(controllers.NewControllerManagerCommand()) },
		"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
		"kube-proxy":              func() int { return cli.Run(proxy.NewProxyCommand()) },
		"kubelet":                 func() int { return cli.Run(command(kubelet.NewKubeletCommand)) },
		"kubectl":                 runKubectl,
	}
}

// command makes a component's command. Some take a context, and which of them do changes between versions of Kubernetes:
// the kubelet's does from 1.34 on.
func command[F func() *cobra.Command | func(context.Context) *cobra.Command](construct F) *cobra.Command {
	if withContext, ok := any(construct).(func(context.Context) *cobra.Command); ok {
		return withContext(context.Background())
	}
	return any(construct).(func() *cobra.Command)()
}

func main() {
	all := components()
	if run, ok := all[filepath.Base(os.Args[0])]; ok {
		os.Exit(run())
	}
	if len(os.Args) > 1 {
		if run, ok := all[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			os.Exit(run())
		}
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(os.Stderr, "kubernetes: call it by a link with the name of a component, or name one first: %s\n", strings.Join(names, ", "))
	os.Exit(2)
}

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

// runKubectl does what upstream's cmd/kubectl does.
func runKubectl() int {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return 0
}
