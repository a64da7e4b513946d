package gitops

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/internal/report"
)

// healthCheck is the script of deploy/gitops/argocd-health.yaml, as Argo CD runs it.
type healthCheck string

func readHealthCheck(t *testing.T) healthCheck {
	t.Helper()
	text, err := os.ReadFile("../../deploy/gitops/argocd-health.yaml")
	harness.Must(t, err)
	var settings struct{ Data map[string]string }
	harness.Must(t, yaml.Unmarshal(text, &settings))
	script := settings.Data["resource.customizations.health.configstamp.dev_ConfigRollout"]
	if script == "" {
		t.Fatal("it has no health check of ConfigRollouts")
	}
	return healthCheck(script)
}

// GetResourceHealth implements health.HealthOverride.
func (h healthCheck) GetResourceHealth(object *unstructured.Unstructured) (*health.HealthStatus, error) {
	vm := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer vm.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString} {
		if err := vm.CallByParam(lua.P{Fn: vm.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	vm.SetGlobal("obj", valueIn(vm, object.Object))
	if err := vm.DoString(string(h)); err != nil {
		return nil, err
	}
	answer, is := vm.Get(-1).(*lua.LTable)
	if !is {
		return nil, fmt.Errorf("it returns a %s", vm.Get(-1).Type())
	}
	return &health.HealthStatus{Status: health.HealthStatusCode(answer.RawGetString("status").String()), Message: answer.RawGetString("message").String()}, nil
}

// valueIn returns a value of an object as the interpreter has it.
func valueIn(vm *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := vm.NewTable()
		for key, one := range value {
			table.RawSetString(key, valueIn(vm, one))
		}
		return table
	case []any:
		table := vm.NewTable()
		for _, one := range value {
			table.Append(valueIn(vm, one))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	}
	return lua.LNil
}

// Argo CD and Flux draw the right conclusion from each state of a report, and from one that was applied a moment ago.
func TestHealth_OfConfigRollouts(t *testing.T) {
	check := readHealthCheck(t)
	want := func(object *unstructured.Unstructured, argo health.HealthStatusCode, flux status.Status) {
		t.Helper()
		is, err := health.GetResourceHealth(object, check)
		harness.Must(t, err)
		if is.Status != argo || is.Message == "" {
			t.Errorf("Argo CD: %+v, want %s", is, argo)
		}
		result, err := status.Compute(object)
		harness.Must(t, err)
		if result.Status != flux {
			t.Errorf("Flux: %+v, want %s", result, flux)
		}
	}
	for state, workload := range map[report.State]report.Workload{
		report.Settling: {State: report.Waiting, Settles: true},
		report.Waiting:  {State: report.Waiting},
		report.Rolling:  {State: report.Rolling},
		report.Held:     {State: report.Held},
		report.Halted:   {State: report.Failed},
		report.Complete: {State: report.Done},
		report.Unused:   {State: report.Held, Observes: true},
	} {
		t.Run(string(state), func(t *testing.T) {
			workload.Name = "deployment/web"
			facts := report.Facts{EditedAt: time.Now(), Workloads: []report.Workload{workload}}
			if is := facts.State(); is != state {
				t.Fatalf("the facts are those of %s", is)
			}
			object := report.ConfigRollout{ObjectMeta: metav1.ObjectMeta{Name: "configmap-c", Generation: 1}, Status: facts.Status(&report.Status{}, "", 1, time.Now())}
			read, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&object)
			harness.Must(t, err)
			argo, flux := health.HealthStatusProgressing, status.InProgressStatus
			switch state {
			case report.Complete, report.Unused:
				argo, flux = health.HealthStatusHealthy, status.CurrentStatus
			case report.Halted:
				argo, flux = health.HealthStatusDegraded, status.FailedStatus
			case report.Held:
				argo = health.HealthStatusSuspended
			default:
			}
			want(&unstructured.Unstructured{Object: read}, argo, flux)
		})
	}
	s := run.Space(t)
	applied := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON([]byte("apiVersion: configstamp.dev/v1alpha1\nkind: ConfigRollout\nmetadata: {name: configmap-c}\nspec: {source: {kind: ConfigMap, name: c}}\n"))
	harness.Must(t, err)
	harness.Must(t, applied.UnmarshalJSON(text))
	created, err := run.Dynamic.Resource(report.GroupVersion().WithResource(report.Resource)).Namespace(s.Namespace).Create(context.Background(), applied, metav1.CreateOptions{})
	harness.Must(t, err)
	if conditions, _, _ := unstructured.NestedSlice(created.Object, "status", "conditions"); len(conditions) > 0 || !strings.HasPrefix(created.GetName(), "configmap-") {
		t.Errorf("the API server answers with %v", created.Object)
	}
	want(created, health.HealthStatusProgressing, status.InProgressStatus)
}
