package sheet

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

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
		storetest.Equal(t, file, `"`+strings.ReplaceAll(want, `"`, `""`)+"\",\"b\"\n", text, "becomes")
		storetest.Same(t, storetest.Value(csv.NewReader(strings.NewReader(file)).ReadAll())(t), [][]string{{want, "b"}})
	}
}

// The console has the same signs.
func TestConsoleHasTheSameSigns(t *testing.T) {
	text := storetest.Value(os.ReadFile("../../../console/src/kit/csv.ts"))(t)
	for name, signs := range map[string]string{"FORMULAS": formulas, "SEPARATORS": separators} {
		storetest.Contains(t, string(text), "const "+name+" = `"+signs+"`;", "csv.ts")
	}
}

// A mark of UTF-8 is dropped, and a file in UTF-16 is refused by name, with or without a mark.
func TestEncodingOfFiles(t *testing.T) {
	const text = "email,name\nayse@example.test,Ayşe\n"
	big, little := "", ""
	for _, unit := range utf16.Encode([]rune(text)) {
		big += string([]byte{byte(unit >> 8), byte(unit)})
		little += string([]byte{byte(unit), byte(unit >> 8)})
	}
	for file, want := range map[string]string{text: text, "\ufeff" + text: text, "": "", "a": "a", "\ufeff": "",
		"\xff\xfe" + little: "!", "\xfe\xff" + big: "!", little: "!", big: "!",
		"a\x00b": "a\x00b", "a\x00b\x00": "!", "a\x00b\x00c\x00dd": "!", "a\x00b\x00ccdd": "a\x00b\x00ccdd",
		"\x00\x00\x00\x00": "\x00\x00\x00\x00"} {
		in, err := Text(strings.NewReader(file))
		if err != nil {
			if want != "!" || !strings.Contains(err.Error(), "UTF-16") {
				t.Errorf("%.20q: %v", file, err)
			}
			continue
		}
		if got, _ := io.ReadAll(in); string(got) != want {
			t.Errorf("%.20q: %q", file, got)
		}
	}
}

// Each message names what was not understood: the encoding, the separator, the column or the position. A text that may
// be a person's is not shown.
func TestMessages(t *testing.T) {
	known := []string{"email", "phoneNumber", "name"}
	_, bare := csv.NewReader(strings.NewReader("a\"b,c\n")).Read()
	_, quote := csv.NewReader(strings.NewReader("\"a\"b\n")).Read()
	for want, err := range map[string]error{
		"<nil>": Encoding("Ayşe"),
		"is not UTF-8 but probably Windows-1254 (Turkish); save the file as UTF-8": Encoding("Ay\xfee \xdda"),
		"is not UTF-8 but probably Windows-1252; save the file as UTF-8":           Encoding("Caf\xe9"),
		"is not UTF-8 but probably UTF-16; save the file as UTF-8":                 Encoding("A\x00\xfe\xff"),
		"column name is not UTF-8 but probably Windows-1254 (Turkish); save the file " +
			"as UTF-8": InColumn(known, []string{"a", "b", "\xd0"}),
		"the columns are separated by semicolons; they must be separated by commas":    Separator([]string{"email;name"}),
		"the columns are separated by tabs; they must be separated by commas":          Separator([]string{"email\tname"}),
		"the columns are separated by vertical bars; they must be separated by commas": Separator([]string{"email|name"}),
		`column 1 is "E-Mail"; did you mean email?`:                                    Unknown(0, "E-Mail", known),
		`column 2 is "phone_number"; did you mean phoneNumber?`:                        Unknown(1, "phone_number", known),
		`column 3 "isAdmin" is unknown; known are email, phoneNumber, name`:            Unknown(2, "isAdmin", known),
		`column 3 is unknown; known are email, phoneNumber, name`:                      Unknown(2, "ada@example.test", known),
		`column 3 "Is a-9: B.0z" is unknown; known are email, phoneNumber, name`:       Unknown(2, "Is a-9: B.0z", known),
		"a column email is missing; the file has id, user name": Missing("email",
			[]string{"id", "user name"}),
		"a column email is missing, or the first line does not name the columns": Missing("email",
			[]string{"id", "Ayşe"}),
		"has 3 fields, and the first line has 5":                       Fault(csv.ErrFieldCount, 3, 5),
		"has a quotation mark in the wrong place, at byte 2 of line 1": Fault(bare, 0, 2),
		"has a quotation mark in the wrong place, at byte 3 of line 1": Fault(quote, 0, 2),
		"the file is empty": Fault(io.EOF, 0, 0),
		"short write":       Fault(io.ErrShortWrite, 0, 0),
	} {
		storetest.Equal(t, fmt.Sprint(err), want)
	}
	for name, shown := range map[string]bool{strings.Repeat("x", 40): true, strings.Repeat("x", 41): false, "": false,
		"9x": false, "0x": false, ":x": true, "a/b": false, "ax\u0080": false} {
		if got := fmt.Sprint(Unknown(0, name, known)); strings.Contains(got, fmt.Sprintf("%q", name)) != shown {
			t.Errorf("%q: %s", name, got)
		}
	}
	storetest.Must(t, InColumn(known, []string{"a", "b", "ş"}))
	for _, columns := range [][]string{{"email"}, {"a;b", "c"}, nil} {
		storetest.Must(t, Separator(columns))
	}
}
