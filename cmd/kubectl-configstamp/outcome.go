package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	var transport *url.Error
	text := strings.Join(strings.Fields(err.Error()), " ")
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(text, " cannot patch resource "): // otherwise an admission webhook or policy denies it
		return outcome{Sentence: fmt.Sprintf("you have no right to patch workloads in namespace %s, and the webhook is asked by a patch (as a dry run, which changes nothing)", namespace), Lasting: true}
	case strings.Contains(text, "does not support dry run"):
		return outcome{Sentence: "another webhook refuses dry runs: " + text, Lasting: true}
	case strings.Contains(text, "failed calling webhook"):
		return outcome{Sentence: "the API server could not call a webhook: " + text}
	case errors.As(err, &transport):
		return outcome{Sentence: "the API server cannot be reached: " + transport.Err.Error()}
	}
	if strings.Contains(text, "admission webhook") && strings.Contains(text, "denied the request") {
		return outcome{Sentence: "another webhook refuses the dry run: " + text}
	}
	return outcome{Sentence: "the API server refuses the dry run: " + text}
}
