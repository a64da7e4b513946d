package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/cache/follow"
)

// askWithin bounds one question.
const askWithin = 32 * time.Second

// NewClient makes a Client that asks the API server of config. client-go's own links all
// groups of the API.
func NewClient(config *rest.Config) (Client, error) {
	client, err := follow.NewRaw(config, metav1.SchemeGroupVersion, unread)
	if err != nil {
		return nil, err
	}
	return asking{client}, nil
}

func unread([]byte) (runtime.Object, error) {
	return nil, errors.New("what a group serves is read as it comes")
}

type asking struct{ client rest.Interface }

// ServerResourcesForGroupVersion implements Client, for groups with a name.
func (a asking) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	answer := a.client.Get().AbsPath("/apis", groupVersion).Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, err
	}
	text, err := answer.Raw()
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("reading what %s serves: %w", groupVersion, err)
	}
	return &list, nil
}
