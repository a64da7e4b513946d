// Package inspect reads a cluster for the kubectl plugin, with the rights of its user and
// nothing else: never the digest key, and of ConfigMaps and Secrets never more than
// metadata (but for configstamp-settings, which everybody may read, and Content, which
// keeps hashes). What it has read are the types of package seen; it draws no conclusions.
//
// What is out of date it asks the webhook (Cluster.Ask), by a server-side dry run of a
// rolling re-admission, so that the answer is the product's own. No answer is
// seen.Unknown, never "in step".
//
//	cluster, err := inspect.New(config, "configstamp")
//	settings, err := cluster.Settings(ctx)            // policy, kinds, limits
//	namespaces, err := cluster.Namespaces(ctx, "shop") // none: all
//	workloads, err := cluster.Workloads(ctx, settings, inspect.Which{Namespace: "shop"})
//	outcomes := cluster.Ask(ctx, workloads, nil)
//	cluster.Gaps()                                    // what could not be looked at
//
// AskNamespaces asks of namespaces that no label opts in whether they are served.
//
// Beside these: Workload and FindKind for what people name; Source and Sources (metadata,
// with who wrote when); OurEvents. Fleet reads all of that which answers about many
// workloads need; Checkup reads what doctor looks at.
//
// Nothing is ever written.
//
// Read it in this order: cluster.go (requests, lists in pages, gaps), parallel.go,
// settings.go, kinds.go, metadata.go (who wrote what), workloads.go, sources.go, content.go,
// revisions.go, events.go, ask.go, fleet.go, checkup.go (what doctor looks at). Package
// e2e/fakecluster is what tests of it stand on.
package inspect
