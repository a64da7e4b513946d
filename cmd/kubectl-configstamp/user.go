package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviews is a client of the API groups in which the API server says who the user is, and what the user may do.
func reviews[Client any](p *plugin, newClient func(*rest.Config) (Client, error)) (client Client, err error) {
	config, err := p.config.ToRESTConfig()
	if err != nil {
		return client, err
	}
	return newClient(config)
}

// whoAmI is the name that the API server has for the user, "" if it does not say.
func (p *plugin) whoAmI(ctx context.Context) string {
	client, err := reviews(p, authenticationclient.NewForConfig)
	if err != nil {
		return ""
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// mayPatch reports whether the user may change an object: what may not be done is no advice.
func (p *plugin) mayPatch(ctx context.Context, t *target) bool {
	client, err := reviews(p, authorizationclient.NewForConfig)
	if err != nil {
		return false
	}
	of := t.Mapping.Resource
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: "patch", Group: of.Group, Resource: of.Resource, Namespace: t.Namespace, Name: t.Name,
	}}}
	review, err = client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed
}

// serverClock is the API server's clock, from the header Date of its newest answer.
type serverClock struct {
	http.RoundTripper
	seconds *atomic.Int64 // since 1970; 0: there was no answer
}

// RoundTrip implements http.RoundTripper.
func (c serverClock) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(request)
	if err == nil {
		if at, parsed := http.ParseTime(response.Header.Get("Date")); parsed == nil {
			c.seconds.Store(at.Unix())
		}
	}
	return response, err
}

// serverTime is the API server's time, in whole seconds. This machine's clock may be wrong.
func (p *plugin) serverTime() (time.Time, error) {
	if seconds := p.clock.Load(); seconds != 0 {
		return time.Unix(seconds, 0).UTC(), nil
	}
	return time.Time{}, errors.New("the API server did not say what time it is (header Date)")
}

// clockTime is the API server's time, as far as it says, otherwise this machine's.
func (p *plugin) clockTime() time.Time {
	if now, err := p.serverTime(); err == nil {
		return now
	}
	return p.now()
}
