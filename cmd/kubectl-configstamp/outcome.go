package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// outcome is what the webhook answered to the dry run of a rolling re-admission.
type outcome struct {
	Code reason.Outcome
	// Sentence is the webhook's own. Without an answer it says why nothing is known.
	Sentence string
	// Lasting says that asking again is of no use: a right is missing, or another webhook refuses dry runs.
	Lasting bool
}

// ask asks the webhook, by a dry run, what a rolling re-admission of a workload would do. after is the workload as it
// would be then, nil if the dry run is refused.
func (t *target) ask(ctx context.Context) (after *target, answer outcome, err error) {
	after, warnings, err := t.patch(ctx, types.MergePatchType, []byte("{}"), patchOptions(serverDryRun, checksum.RollingManager))
	if err != nil {
		return nil, refusedDryRun(t.Namespace, err), err
	}
	if answer = outcomeIn(warnings); answer.Code == reason.NoOutcome {
		answer.Sentence = "the webhook gave no answer: it is stopped, cannot be reached, or does not serve this workload"
	}
	return after, answer, nil
}

// outcomeIn returns the outcome in the warnings of a dry run. Its sentence is empty if there is none.
func outcomeIn(warnings []string) outcome {
	found := outcome{Code: reason.OutcomeIn(warnings)}
	for _, warning := range warnings {
		if message, _ := reason.Parse(warning); found.Code != reason.NoOutcome && message.Outcome() == found.Code {
			found.Sentence = message.Sentence
			break
		}
	}
	return found
}

// refusedDryRun returns the outcome of a dry run in a namespace that the API server refused, or did not answer.
func refusedDryRun(namespace string, err error) outcome {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if apierrors.IsForbidden(err) && strings.Contains(text, " cannot patch resource ") { // otherwise an admission webhook or policy denies it
		return outcome{Sentence: fmt.Sprintf("you have no right to patch workloads in namespace %s, and the webhook is asked by a patch (as a dry run, which changes nothing)", namespace), Lasting: true}
	}
	return outcome{Sentence: "the dry run is refused: " + text, Lasting: strings.Contains(text, "does not support dry run")}
}
