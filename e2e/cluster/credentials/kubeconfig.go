package credentials

import (
	"encoding/base64"
	"fmt"
	"os"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: %[1]s
contexts:
- name: %[1]s
  context: {cluster: %[1]s, user: %[1]s}
clusters:
- name: %[1]s
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
users:
- name: %[1]s
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
`

// Kubeconfig writes a kubeconfig that needs no other file.
func (a *Authority) Kubeconfig(path, name, server string, user Pair) error {
	var encoded [3]string
	for i, file := range []string{a.CertificateFile(), user.Certificate, user.Key} {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("writing the kubeconfig %s: %w", path, err)
		}
		encoded[i] = base64.StdEncoding.EncodeToString(content)
	}
	content := fmt.Sprintf(kubeconfig, name, server, encoded[0], encoded[1], encoded[2])
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}
