package demo

import (
	"strconv"
	"strings"
)

// culture is the source of a person's names. A name is written in its script and spelled in Latin letters, for the
// address.
type culture struct {
	language        string
	first, last     []string
	countries       []string // ISO 3166-1 alpha-2, the most frequent more than once
	firstIn, lastIn []string // in Latin letters; nil: the names themselves
}

func words(s string) []string { return strings.Fields(s) }

var cultures = []culture{
	{language: "tr",
		first: words("Ayşe Fatma Zeynep Elif Defne Melis Ceren Derya Esra Gamze Hande İrem Merve Nazlı Özlem Pınar Selin " +
			"Şeyma Tuğba Yasemin Ahmet Mehmet Mustafa Ali Hüseyin Emre Burak Can Deniz Kerem Murat Onur Serkan Tolga " +
			"Umut Volkan Yiğit Çağrı Barış Kaan"),
		last: words("Yılmaz Kaya Demir Çelik Şahin Yıldız Yıldırım Öztürk Aydın Özdemir Arslan Doğan Kılıç Aslan Çetin " +
			"Kara Koç Kurt Özkan Şimşek Polat Korkmaz Özcan Erdoğan Güneş Aksoy Bulut Taş Ateş Güler Tekin Yavuz " +
			"Sarı Duman Ünal Işık Avcı Bozkurt Acar Turan"),
		countries: words("TR TR TR TR TR TR TR TR DE NL")},
	{language: "en",
		first: words("Alice Emma Olivia Grace Hannah Chloe Lucy Sophie Megan Ruby James Oliver Harry Jack Noah Thomas " +
			"Daniel Samuel Henry Adam Clara Julia Nora Peter Simon Victor"),
		last: words("Smith Brown Taylor Wilson Evans Walker Wright Green Hall Wood Clarke Turner Hill Moore Baker Carter " +
			"Mitchell Parker Cooper Morgan Bennett Foster Hughes Marsh Reed Stone"),
		countries: words("GB GB US DE NL")},
	{language: "ar",
		first: words("أحمد محمد عمر علي خالد يوسف حسن إبراهيم سامي طارق فاطمة مريم ليلى نور سارة هدى رنا دانا سلمى أمينة"),
		last:  words("الخطيب حداد النجار العلي منصور صالح ناصر حمدان قاسم سليم عزيز رشيد فارس كريم شاهين زيدان"),
		firstIn: words("ahmad mohammad omar ali khaled yousef hasan ibrahim sami tarek fatima maryam layla nour sara huda " +
			"rana dana salma amina"),
		lastIn: words("alkhatib haddad alnajjar alali mansour saleh nasser hamdan qasem salim aziz rashid faris karim " +
			"shahin zaidan"),
		countries: words("AE SA TR TR AZ")},
}

// dialling are the dialling codes of the countries.
var dialling = map[string]string{"TR": "90", "DE": "49", "NL": "31", "GB": "44", "US": "1", "AE": "971", "SA": "966",
	"AZ": "994"}

var companies = struct{ place, trade, form []string }{
	words("Anadolu Marmara Ege Toros Karadeniz Boğaziçi Pamukkale Göbekli Nemrut Kapadokya Munzur Kaçkar"),
	words("Lojistik Yazılım Tekstil Gıda Enerji Danışmanlık Turizm Makine İnşaat Tarım Elektronik Medya"),
	[]string{"A.Ş.", "Ltd. Şti."},
}

var latin = strings.NewReplacer("ç", "c", "ğ", "g", "ı", "i", "ö", "o", "ş", "s", "ü", "u", "Ç", "c", "Ğ", "g", "İ",
	"i", "Ö", "o", "Ş", "s", "Ü", "u", " ", "", ".", "")

// mailAddress returns the mail address of a name: under a domain that can never exist.
func mailAddress(first, last string, n int) string {
	return strings.ToLower(latin.Replace(first)+"."+latin.Replace(last)) + strconv.Itoa(n) + "@posta.example"
}

// numbers are the last digits of the phones. The national numbers begin with 500, which is no range of mobile phones in
// Türkiye, and in Azerbaijan, whose numbers have nine digits, with 30.
const (
	numbers      = 9_999_900 // those of the accounts; the named ones have the rest
	numberFactor = 7_368_787 // coprime with numbers, so that it spreads them
)

func nationalNumber(country string, seed uint64, n int) string {
	k := (int64(n)*numberFactor + int64(seed%numbers)) % numbers
	digits, first := strconv.FormatInt(k+100, 10), "500"
	if country == "AZ" {
		first = "30"
	}
	return first + strings.Repeat("0", 7-len(digits)) + digits
}
