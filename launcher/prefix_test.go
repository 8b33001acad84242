package launcher

import "testing"

func TestExpandPrefix(t *testing.T) {
	values := map[string]string{"role_name": "trainer", "rank": "12", "local_rank": "4", "_x9": "u", "Rank": "upper",
		"dollar": "$rank", "größe": "not a name", "": "nor this", "$": "nor that"}
	tests := []struct{ template, want string }{
		{"", ""},
		{"no name", "no name"},
		{"[${role_name}${rank}]: ", "[trainer12]: "},
		{"$role_name/$local_rank>", "trainer/4>"},
		{"$rank$rank${rank}", "121212"},
		{"${rank}0 $rank0 $rank_", "120 $rank0 $rank_"},
		{"$_x9 $Rank $RANK", "u upper $RANK"},
		{"$$", "$"},
		{"$$rank $$$rank $$$$", "$rank $12 $$"},
		{"$$ {rank}", "$ {rank}"},
		{"$nobody ${nobody} $", "$nobody ${nobody} $"},
		{"${rank", "${rank"},
		{"${} ${ rank} ${rank } ${1} $1 $-", "${} ${ rank} ${rank } ${1} $1 $-"},
		{"${$rank}", "${12}"},
		{"$dollar", "$rank"}, // once only
		{"$größe ${größe}", "$größe ${größe}"},
		{"$rankö $rank\xff\n", "12ö 12\xff\n"},
	}
	for _, tt := range tests {
		if got := ExpandPrefix(tt.template, values); got != tt.want {
			t.Errorf("%q gives %q, want %q", tt.template, got, tt.want)
		}
	}
}

func FuzzExpandPrefix(f *testing.F) {
	for _, s := range []string{"[${role_name}${rank}]:", "$rank$$", "${rank", "$", "${$$}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := ExpandPrefix(ExpandPrefix(s, nil), nil); len(got) > len(s) {
			t.Errorf("%q became longer without values: %q", s, got)
		}
	})
}
