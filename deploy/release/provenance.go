package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

const provenanceFile = "provenance.json"

// makeProvenance writes what the release was made of, and how, as an in-toto statement with a
// predicate of SLSA. It is about every file so far, and about the image by its digest.
func (r *release) makeProvenance(ctx context.Context) error {
	statement, err := r.statement(ctx)
	if err != nil {
		return err
	}
	if err := statement.Validate(); err != nil {
		return err
	}
	text, err := asJSON(statement)
	if err != nil {
		return err
	}
	return r.write(provenanceFile, text)
}

func (r *release) statement(ctx context.Context) (*intoto.Statement, error) {
	predicate, err := r.predicate(ctx)
	if err != nil {
		return nil, err
	}
	subjects := []*intoto.ResourceDescriptor{{Name: r.image, Digest: map[string]string{"sha256": strings.TrimPrefix(r.index, "sha256:")}}}
	files, err := r.files()
	if err != nil {
		return nil, err
	}
	for _, one := range files {
		subjects = append(subjects, &intoto.ResourceDescriptor{Name: one.name, Digest: map[string]string{"sha256": one.sum}})
	}
	return &intoto.Statement{Type: intoto.StatementTypeUri, Subject: subjects, PredicateType: "https://slsa.dev/provenance/v1", Predicate: predicate}, nil
}

// predicate says from what, with what, by what.
func (r *release) predicate(ctx context.Context) (*structpb.Struct, error) {
	goVersion, err := r.command(ctx, nil, "go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	helm, err := buildinfo.ReadFile(r.helm)
	if err != nil {
		return nil, err
	}
	parameters, err := structpb.NewStruct(map[string]any{"command": "make release VERSION=" + r.version + " IMAGE=" + r.image, "version": r.version, "image": r.image})
	if err != nil {
		return nil, err
	}
	module := func(module *debug.Module) *intoto.ResourceDescriptor {
		return &intoto.ResourceDescriptor{Uri: packageURL(module)}
	}
	predicate := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{
			BuildType: source + "/blob/main/docs/releases.md", ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+" + source, Digest: map[string]string{"gitCommit": r.commit}},
				module(standardLibrary(string(goVersion))), module(&helm.Main),
			},
		},
		RunDetails: &slsa.RunDetails{Builder: &slsa.Builder{Id: source + "/tree/" + r.commit + "/deploy/release"}},
	}
	if err := predicate.Validate(); err != nil {
		return nil, fmt.Errorf("the predicate: %w", err)
	}
	text, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, err
	}
	made := new(structpb.Struct)
	return made, protojson.Unmarshal(text, made)
}

// asJSON is the same text each time, which protojson alone does not promise.
func asJSON(message proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(message)
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(plain)
	return out.Bytes(), err
}
