// Command kubelets reads the ConfigMaps of a namespace's Pods as kubelets do, by the very
// code of theirs: package configmap of the kubelet, which watches each ConfigMap that a Pod of
// its node names, and stops when that is immutable. It runs no container. It prints a line
// when every Pod could start, and goes on until it is stopped.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/kubelet/configmap"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how the API server is reached")
	namespace := flag.String("namespace", "", "whose Pods are read")
	nodes := flag.Int("nodes", 10, "how many kubelets share them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace, *nodes); err != nil {
		fmt.Fprintln(os.Stderr, "kubelets:", err)
		os.Exit(1)
	}
	<-ctx.Done()
}

func run(ctx context.Context, kubeconfig, namespace string, nodes int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing Pods of %s: %w", namespace, err)
	}
	const resync = time.Minute // syncFrequency of a kubelet, as by default
	managers := make([]configmap.Manager, nodes)
	for i := range managers {
		managers[i] = configmap.NewWatchingConfigMapManager(client, resync)
	}
	for i := range pods.Items {
		managers[i%nodes].RegisterPod(&pods.Items[i])
	}
	for i := range pods.Items {
		if err := start(managers[i%nodes], &pods.Items[i]); err != nil {
			return err
		}
	}
	_, err = fmt.Println("every Pod can start")
	return err
}

// start reads what a Pod's containers need.
func start(manager configmap.Manager, pod *corev1.Pod) (err error) {
	podutil.VisitPodConfigmapNames(pod, func(name string) bool {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if _, err = manager.GetConfigMap(pod.Namespace, name); err == nil || time.Now().After(deadline) {
				break
			}
		}
		if err != nil {
			err = fmt.Errorf("reading ConfigMap %s of Pod %s/%s: %w", name, pod.Namespace, pod.Name, err)
		}
		return err == nil
	})
	return err
}
