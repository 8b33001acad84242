// Package release says which version of gorun this is.
package release

// Version is the version of this code. The agents of a job compare it (Settings in elastic.go of package cli), so it is equal in all
// builds of the same code, whatever a build knows of the commit. Between two releases, it is that of the next one with -dev behind it
// (docs/releases.md).
const Version = "0.1.0-dev"
