// Package certs holds the serving certificate of configstamp's webhook and keeps it fresh.
//
// There are two ways to one [Source]. [FromFiles] reads the pair that cert-manager (or anybody) has
// mounted, and follows it as it changes. [FromAuthority] is for clusters without cert-manager: it
// keeps a small authority in a Secret, signs the certificate itself, and has the API server trust it
// by the caBundle of our own webhook configuration: each process keeps the one by which it is called,
// so that none waits for the other's. The Source decides *when* a newer
// certificate takes over.
//
// Nothing of it stands on cert-manager's pkg/server/tls, which does much the same: that links client-go's
// clientset, LDAP, the Gateway API and a logging framework, 12 MB of program.
//
// The package knows nothing of admission, sources or workloads, and must not: it hands a certificate
// to whatever TLS server asks. It registers no metric and opens no port. No key, and no byte of a
// file that was meant to hold one, is ever logged.
//
// Start reading at source.go. Then files.go; or authority.go, injector.go, configuration.go, sign.go, trust.go. What repeats itself in the log passes through quiet.go.
package certs
