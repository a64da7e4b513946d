package discovery

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/cache/follow"
)

// askWithin bounds one question.
const askWithin = 32 * time.Second

// NewClient makes a Client that asks the API server of config. client-go's own links all
// groups of the API.
func NewClient(config *rest.Config) (Client, error) {
	client, err := follow.Dynamic(config, metav1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	return asking{client}, nil
}

type asking struct{ client rest.Interface }

// ServerResourcesForGroupVersionWithContext implements Client, for groups with a name.
func (a asking) ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	list := &metav1.APIResourceList{}
	if err := a.client.Get().AbsPath("/apis", groupVersion).Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("reading what %s serves: %w", groupVersion, err)
	}
	return list, nil
}
