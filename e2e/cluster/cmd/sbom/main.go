// Command sbom writes what a Go binary was made of, as its linker recorded it,
// as a CycloneDX document on standard output:
//
//	sbom <binary> <version>
package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "sbom: want two arguments: a Go binary, and the version that it is of")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(binary, version string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("reading what %s was made of: %w", binary, err)
	}
	info.Main.Version = version // a build that leaves version control out cannot know
	made := component(cyclonedx.ComponentTypeApplication, &info.Main)
	components := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, &debug.Module{Path: "std", Version: info.GoVersion})}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, component(cyclonedx.ComponentTypeLibrary, module))
	}
	document := cyclonedx.NewBOM()
	document.Metadata = &cyclonedx.Metadata{Component: &made}
	document.Components = &components
	encoder := cyclonedx.NewBOMEncoder(os.Stdout, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}

func component(kind cyclonedx.ComponentType, module *debug.Module) cyclonedx.Component {
	url := "pkg:golang/" + module.Path + "@" + module.Version
	c := cyclonedx.Component{Type: kind, BOMRef: url, Name: module.Path, Version: module.Version, PackageURL: url}
	if module.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: module.Sum}}
	}
	return c
}
