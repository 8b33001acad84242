package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gorun/gorun/cmd/gorun/internal/release"
)

const version = release.Version

// versionCommand is gorun version.
func versionCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "version [flags]", DisableFlagsInUseLine: true, Short: "Print the version, and of which commit and with which Go it was built",
		Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := release.ThisBuild()
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(b)
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), b.Text())
			return err
		},
	}
	ownFlag(cmd, "json", "", "", "print one line of JSON", setTo(&asJSON, parseSwitch))
	return cmd
}
