package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// writeSBOM writes what a program was made of, as its linker recorded it, as a CycloneDX document.
func (r *release) writeSBOM(name string, binary []byte) error {
	document, err := r.sbom(binary)
	if err != nil {
		return fmt.Errorf("reading what %s was made of: %w", name, err)
	}
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(document, cyclonedx.SpecVersion1_6); err != nil {
		return err
	}
	return r.write(name+".cdx.json", out.Bytes())
}

func (r *release) sbom(binary []byte) (*cyclonedx.BOM, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, err
	}
	sum := sha256Of(binary)
	info.Main.Version = r.version // a build that leaves version control out cannot know
	info.Main.Sum = ""
	made := component(cyclonedx.ComponentTypeApplication, &info.Main)
	made.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
	made.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	parts := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, standardLibrary(info.GoVersion))}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		parts = append(parts, component(cyclonedx.ComponentTypeLibrary, module))
	}
	var needs []string
	for _, part := range parts {
		needs = append(needs, part.BOMRef)
	}
	document := cyclonedx.NewBOM()
	document.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(source+"#"+sum)).URN()
	document.Metadata = &cyclonedx.Metadata{Timestamp: r.made.Format(time.RFC3339), Component: &made}
	document.Components = &parts
	document.Dependencies = &[]cyclonedx.Dependency{{Ref: made.BOMRef, Dependencies: &needs}}
	return document, nil
}

func component(kind cyclonedx.ComponentType, module *debug.Module) cyclonedx.Component {
	url := packageURL(module)
	c := cyclonedx.Component{Type: kind, BOMRef: url, Name: module.Path, Version: module.Version, PackageURL: url}
	if module.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: module.Sum}}
	}
	return c
}

// standardLibrary is Go's, as databases of weaknesses name it.
func standardLibrary(goVersion string) *debug.Module {
	return &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(strings.TrimSpace(goVersion), "go")}
}

func packageURL(module *debug.Module) string {
	return "pkg:golang/" + module.Path + "@" + module.Version
}
