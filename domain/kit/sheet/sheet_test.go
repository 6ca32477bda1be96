package sheet

import (
	"encoding/csv"
	"os"
	"reflect"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// A formula begins neither in a cell nor after a separator or a blank within it. All other texts are unchanged.
func TestNoCellBeginsAFormula(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Ada": "Ada", "1=1": "1=1", "a-b": "a-b", `say "yes"`: `say "yes"`, "=1": "'=1", "+1": "'+1", "-1": "'-1",
		"@A1": "'@A1", "\t1": "'\t1", "\r1": "'\r1", "\n1": "'\n1", "＝1": "'＝1", "＠A": "'＠A",
		"Ada;=HYPERLINK(A1)": "Ada;'=HYPERLINK(A1)", "a,=1": "a,'=1", "a|+1": "a|'+1", "a:@b": "a:'@b", `a"=1`: `a"'=1`,
		"a'=1": "a''=1", "a\t=1": "a\t'=1", "a\n=1": "a\n'=1", " =1": " '=1", "\u00a0=1": "\u00a0'=1",
		"\u200b=1": "\u200b'=1",
		"\ufeff=1": "\ufeff'=1", "a\u3000－1": "a\u3000'－1", "a؛=1": "a؛'=1", "x;+1;-2": "x;'+1;'-2",
	} {
		file := string(CSV([][]string{{text, "b"}}))
		if quoted := `"` + strings.ReplaceAll(want, `"`, `""`) + "\",\"b\"\n"; file != quoted {
			t.Errorf("%q becomes %s, want %s", text, file, quoted)
		}
		rows, err := csv.NewReader(strings.NewReader(file)).ReadAll()
		if err != nil || !reflect.DeepEqual(rows, [][]string{{want, "b"}}) {
			t.Errorf("%q is read as %q, %v", text, rows, err)
		}
	}
}

// The console has the same signs.
func TestConsoleHasTheSameSigns(t *testing.T) {
	text, err := os.ReadFile("../../../console/src/kit/csv.ts")
	storetest.Must(t, err)
	for name, signs := range map[string]string{"FORMULAS": formulas, "SEPARATORS": separators} {
		if want := "const " + name + " = `" + signs + "`;"; !strings.Contains(string(text), want) {
			t.Errorf("csv.ts has not the line %s", want)
		}
	}
}
