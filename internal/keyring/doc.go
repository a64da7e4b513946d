// Package keyring keeps the keys of the installation's digests: the Secret
// configstamp-key in configstamp's own namespace.
//
// The Secret has one data entry per key, 32 random bytes, named by the time at
// which the key was made (UTC, 20060102T150405Z). Any process makes the first
// one and reads it back before it uses it; nothing is ever stamped under a key
// that is not stored. All keys verify; the newest by name makes new digests,
// once a grace has passed in which every process has come to know it.
//
//   - To rotate, add an entry. To replace the whole of the Secret by another
//     one rotates too: processes put the keys they hold back beside it.
//   - To retire a key for good, set its entry to an empty value. An entry that
//     is merely gone or damaged is put back by any process that holds the key,
//     as stamps may have been made with it, and so is a Secret that was
//     deleted: losing a key by accident must not cost what was recorded.
//   - An entry with another name or length verifies nothing, is named in the
//     log, and is left alone.
//
// It must not know what is digested, and never prints a key: logs have the
// names of entries and the public ids of keys. Start reading at entries.go (the
// format and the choice), then keyring.go, stored.go and refresh.go (a key that is not
// known is looked for).
//
// Rights needed, in configstamp's namespace: create on secrets; get, list,
// watch and update on secrets with the resource name configstamp-key. The chart's
// ValidatingAdmissionPolicy configstamp-secrets holds these to what this package does:
// a key is added or mended, and none is changed, retired or taken away.
package keyring
