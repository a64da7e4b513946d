package checksum_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
)

func TestMetadataNeverCounts(t *testing.T) {
	yes := true
	full := metav1.ObjectMeta{
		Name: "other", Namespace: "other", UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}, Finalizers: []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	cm := &corev1.ConfigMap{ObjectMeta: full, Immutable: &yes, Data: map[string]string{"a": "1"}}
	if !checksum.ContentOfConfigMap(cm).Equal(text("a", "1")) {
		t.Error("a ConfigMap's metadata counts")
	}
	secret := &corev1.Secret{ObjectMeta: full, Immutable: &yes, Type: "other", Data: map[string][]byte{"a": []byte("1")}}
	if !checksum.ContentOfSecret(secret).Equal(text("a", "1")) {
		t.Error("a Secret's metadata or type counts")
	}
}

func TestContentsAreEqualWhenEveryRuleSeesThemSo(t *testing.T) {
	for about, c := range map[string]struct {
		a, b *checksum.Content
		want bool
	}{
		"both absent":                       {nil, nil, true},
		"absent and empty":                  {nil, text(), false},
		"empty and absent":                  {text(), nil, false},
		"the same":                          {text("a", "1", "b", "2"), text("b", "2", "a", "1"), true},
		"another value":                     {text("a", "1"), text("a", "2"), false},
		"another name":                      {text("a", "1"), text("b", "1"), false},
		"one more":                          {text("a", "1"), text("a", "1", "b", ""), false},
		"binaryData, which env can not see": {text("a", "1"), blob("a", "1"), false},
	} {
		if got := c.a.Equal(c.b); got != c.want {
			t.Errorf("%s: %v", about, got)
		}
	}
}
