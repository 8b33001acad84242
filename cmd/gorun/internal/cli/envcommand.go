package cli

import (
	"github.com/spf13/cobra"

	"github.com/gorun/gorun/cmd/gorun/internal/inventory"
)

// envCommand is gorun env.
func envCommand(here host) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "env [flags]", DisableFlagsInUseLine: true, Short: "Print what gorun finds on this machine: processors, memory, limits, addresses",
		Long: "What gorun cannot find out, it leaves out, and says so at the end. docs/environment.md explains the names in the JSON.",
		Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := inventory.Find(cmd.Context(), here.root, here.lookup)
			return show(cmd.OutOrStdout(), asJSON, f, f.Text)
		},
	}
	ownFlag(cmd, "json", "", "", "print JSON", setTo(&asJSON, parseSwitch))
	return cmd
}
