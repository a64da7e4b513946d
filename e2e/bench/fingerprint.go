package main

import (
	"debug/buildinfo"
	"fmt"
)

// fingerprint says what a binary is by what the Go linker wrote into it.
func fingerprint(binary string) (string, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "", fmt.Errorf("reading what %q was built from: %w", binary, err)
	}
	version := info.Main.Version
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			version += " " + setting.Value[:min(12, len(setting.Value))]
		}
	}
	return fmt.Sprintf("%s %s, %s", info.Main.Path, version, info.GoVersion), nil
}
