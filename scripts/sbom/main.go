// Command sbom prints the software bill of materials of a Go binary: which modules are in it, as CycloneDX 1.6 in JSON.
//
//	go run ./scripts/sbom gorun >gorun.cdx.json
//
// What it prints follows from the binary alone, so that equal binaries have equal bills.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// The documents of https://cyclonedx.org/docs/1.6/json, as far as they are needed here.
type (
	bill struct {
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp,omitempty"` // of the commit
		Component component `json:"component"`
	}
	component struct {
		Ref        string     `json:"bom-ref"`
		Type       string     `json:"type"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		URL        string     `json:"purl"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/sbom BINARY")
		os.Exit(2)
	}
	info, err := buildinfo.ReadFile(os.Args[1])
	if err == nil {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		err = out.Encode(billOf(info))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// billOf lists what is in a binary: its modules, and Go's standard library.
func billOf(info *debug.BuildInfo) bill {
	main := componentOf(&info.Main)
	main.Type = "application"
	b := bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{Component: main}}
	std := debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}
	on := dependency{Ref: main.Ref}
	for _, m := range append([]*debug.Module{&std}, info.Deps...) {
		if m.Replace != nil {
			m = m.Replace
		}
		c := componentOf(m)
		b.Components, on.On = append(b.Components, c), append(on.On, c.Ref)
	}
	b.Dependencies = []dependency{on}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			b.Metadata.Timestamp = s.Value
		}
		b.Metadata.Component.Properties = append(b.Metadata.Component.Properties, property{"build:" + s.Key, s.Value})
	}
	return b
}

func componentOf(m *debug.Module) component {
	url := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := component{Ref: url, Type: "library", Name: m.Path, Version: m.Version, URL: url}
	// h1 is the SHA-256 of the list of the module's files with the SHA-256 of each, as in go.sum.
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
	}
	return c
}
