"""The journal's records: readable for ever, refused when they come from the future, and their subjects."""

import ast
from pathlib import Path

import msgspec
import pytest

from gateway.engine.subjects import matches
from gateway.errors import EngineTooNew
from gateway.messages.message import Address
from gateway.records import records, subjects

# As version 1 wrote them. A line may never be changed or taken away; what is new gets a new one.
WRITTEN = {
    b'{"kind":"in","v":1,"at":1.5,"session_key":"k","message":{"id":"7","address":{"platform":"net","chat_id":"1",'
    b'"chat_type":"dm","thread_id":""},"user_id":"ann","text":"hi","user_name":"","kind":"text","attachments":[],'
    b'"reply_to":"","session":"","sent_at":0.0,"extra":{}}}': records.InboundMessage,
    b'{"kind":"audio","v":1,"at":0.0,"session_key":"k","on":3,"file":0,"state":"failed","tries":2,"text":"","error":"x",'
    b'"person":"net:ann"}': records.AudioTranscription,
    b'{"kind":"voice","v":1,"at":0.0,"session_key":"k","reply":{"id":"t:reply","address":{"platform":"net","chat_id":"1",'
    b'"chat_type":"dm","thread_id":""},"text":"hi","attachments":[],"buttons":[],"reply_to":"7","silent":false,'
    b'"literals":[],"role":"user","is_spoken":false},"turn_id":"t","state":"begun","tries":1,"path":"/f/a","error":"",'
    b'"person":"net:ann","cause":null}': records.VoiceAnswer,
    b'{"kind":"heard","v":1,"at":2.5,"message":{"id":"7","address":{"platform":"net","chat_id":"-1","chat_type":"group"},'
    b'"user_id":"ann","text":"hi","user_name":"Ann","sent_at":2.0},"place":"net:-1","session_key":"","before":""}': (
        records.HeardMessage
    ),
    b'{"kind":"name","v":1,"at":2.0,"of":"net:-1","name":"Ops","is_chat":true,"within":"Work","is_trusted":true}': (
        records.KnownName
    ),
    b'{"kind":"chat","v":1,"at":0.0,"chat":"net:-1:7","values":{"answer":"always"}}': records.ChatRuleRecord,
    b'{"kind":"bell","v":1,"at":0.0,"session_key":"k"}': records.LaneWakeup,
    b'{"kind":"claim","v":1,"at":0.0,"turn_id":"t","by":"n","on":3,"attempt":1}': records.Claim,
    b'{"kind":"llm","v":1,"at":0.0,"turn_id":"t","hop":0,"entry":{"role":"assistant","content":"hm","tool_calls":'
    b'[{"id":"c","name":"look","args":{"a":1}}],"call_id":"","name":"","error":false},"usage":{"input_tokens":1,'
    b'"output_tokens":2,"calls":1,"cost":0.5}}': records.LlmStep,
    b'{"kind":"tool_started","v":1,"at":0.0,"turn_id":"t","call_id":"c","name":"look","args":{},"repeatable":false}': (
        records.ToolStarted
    ),
    b'{"kind":"tool_finished","v":1,"at":0.0,"turn_id":"t","call_id":"c","entry":{"role":"tool","content":"x"}}': (
        records.ToolFinished
    ),
    b'{"kind":"said","v":1,"at":0.0,"turn_id":"t","reply_id":"r"}': records.InterimReply,
    b'{"kind":"released","v":1,"at":0.0,"turn_id":"t"}': records.ClaimReleased,
    b'{"kind":"asked","v":1,"at":0.0,"turn_id":"t","questions":{"q":"sure?"},"until":9.0}': records.QuestionsAsked,
    b'{"kind":"asked","v":1,"at":0.0,"turn_id":"t","questions":{"q":"sure?"},"until":9.0,"calls":{"q":[{"call_id":"c",'
    b'"tool":"look","args":{"a":1},"digest":"d","changed_by":["h"]}]}}': records.QuestionsAsked,
    b'{"kind":"answered","v":1,"at":0.0,"turn_id":"t","name":"q","answer":true,"by":"net:ann"}': (
        records.QuestionAnswered
    ),
    b'{"kind":"answered","v":1,"at":0.0,"turn_id":"t","name":"q","answer":"yes","by":"net:ann","by_name":"Ann"}': (
        records.QuestionAnswered
    ),
    b'{"kind":"decided","v":1,"at":0.0,"turn_id":"t","event_id":"t/tool:before","event":"tool:before","hook":"h",'
    b'"decision":"deny","reason":"no","call_id":"c","hop":1}': records.DecisionRecord,
    b'{"kind":"approval","v":1,"at":0.0,"mark":"m","session_key":"k","turn_id":"t","name":"q","address":{"platform":"net",'
    b'"chat_id":"1"},"message_id":"5","user_id":"ben","user_name":"Ben","is_own":false,"is_attended":true}': (
        records.ApprovalRequest
    ),
    b'{"kind":"done","v":1,"at":0.0,"upto":3,"turn_id":"t","status":"ok","entries":[{"role":"user","content":"hi"}],'
    b'"usage":{},"error":"","bag":{"a":1}}': records.TurnEnded,
    b'{"kind":"opened","v":1,"at":0.0,"session_id":"s","session_key":"k","reason":"branch","previous":"p","platform":'
    b'"net","user_id":"ann","origin":"o","carried":{"entries":[],"turns":[],"bag":{},"settings":{},"usage":{}}}': (
        records.SessionOpened
    ),
    b'{"kind":"changed","v":1,"at":0.0,"name":"title","value":"x"}': records.SettingChanged,
    b'{"kind":"undone","v":1,"at":0.0,"turns":2}': records.TurnsUndone,
    b'{"kind":"summary","v":1,"at":0.0,"upto":9,"shape":1,"state":{"key":"k"}}': records.SessionSnapshot,
    b'{"kind":"out","v":1,"at":0.0,"reply":{"id":"r","address":{"platform":"net","chat_id":"1"},"text":"hi"},'
    b'"session_key":"k","turn_id":"t"}': records.OwedReply,
    b'{"kind":"intent","v":1,"at":0.0,"out":4,"reply_id":"r","part":1,"attempt":1,"message_ids":[["1"]]}': (
        records.SendIntent
    ),
    b'{"kind":"sent","v":1,"at":0.0,"out":4,"reply_id":"r","part":1,"attempts":1,"message_ids":[["1"],["2"]],'
    b'"last":true}': records.SendSucceeded,
    b'{"kind":"failed","v":1,"at":0.0,"out":4,"error":"off","reply_id":"r","part":0,"attempts":2,"message_ids":[],'
    b'"permanent":false,"retry_at":9.0,"strikes":0}': records.SendFailed,
    b'{"kind":"dead","v":1,"at":0.0,"what":"x","reason":"y","attempts":3,"subject":"gw.in.k","seq":1,"data":"eA=="}': (
        records.DeadLetterRecord
    ),
    b'{"kind":"update","v":1,"at":0.0,"platform":"net","update":{"update_id":5},"person":"net:1"}': (
        records.PendingUpdate
    ),
    b'{"kind":"cursor","v":1,"at":0.0,"platform":"net","value":{"offset":5}}': records.CursorRecord,
    b'{"kind":"paired","v":1,"at":0.0,"people":[{"platform":"net","user_id":"7","user_name":"Ann","chat_id":"7","at":1.0,'
    b'"mark":""}],"asking":[{"platform":"net","user_id":"8","mark":"x"}]}': records.PairingState,
    b'{"kind":"keys","v":1,"at":0.0,"keys":[{"name":"scraper","mark":"x","role":"operator","at":1.0}]}': (
        records.ProgramKeyState
    ),
    b'{"kind":"logins","v":1,"at":0.0,"logins":[{"mark":"x","role":"owner","at":1.0,"used":2.0}]}': records.LoginState,
    b'{"kind":"logins","v":1,"at":0.0,"logins":[{"mark":"x","role":"admin","at":1.0,"used":2.0,"person":"net:7"}]}': (
        records.LoginState
    ),
    b'{"kind":"page","v":1,"at":0.0,"message":{"id":"5","address":{"platform":"web","chat_id":"ann"},"user_id":"ann",'
    b'"text":"hi"}}': records.ShownMessage,
    b'{"kind":"activity","v":1,"at":1.0,"what":"stop","on":"h","outcome":"done","who":"a","place":"b"}': (
        records.ActivityRecord
    ),
    b'{"kind":"counted","v":1,"at":1.5,"day":"2026-01-31","row":{"person":"net:ann","usage":{"input_tokens":7,'
    b'"output_tokens":3,"calls":1,"cost":0.5,"model":"m","cached_tokens":2,"cache_written_tokens":1,"reasoning_tokens":1,'
    b'"unpriced":0,"estimated":0},"hook":"h","session_id":"s"},"warned":["w"]}': records.RecordedCall,
    b'{"kind":"day","v":1,"at":0.0,"day":"2026-01-31","rows":[{"person":"net:ann","usage":{},"hook":"","session_id":""}],'
    b'"warned":["w"]}': records.DayUsage,
    b'{"kind":"half_hour","v":1,"at":0.0,"work":{"turns":2,"cost":0.5},"times":[0,2],"messages":{"net":2},"hooks":{"h":[3,'
    b"1]}}": records.HalfHour,
    b'{"kind":"figure_day","v":1,"at":0.0,"hours":{"7":{"turns":2,"tokens":9}}}': records.FigureDay,
    b'{"kind":"folded","v":1,"at":0.0,"upto":9}': records.UsageCursor,
    b'{"kind":"call","v":1,"at":0.0,"id":"c","key":"k","agent":"main","session_key":"s","digest":"d","user":"u",'
    b'"stored":true}': records.ProgramCall,
    b'{"kind":"shown","v":1,"at":0.0,"reply_id":"r","text":"hello"}': records.ShownReply,
    b'{"kind":"deleted","v":1,"at":0.0,"ahead":0.0,"session_key":"s","name":{"platform":"net","chat":"c","id":"5"},'
    b'"person":"net:ann"}': records.MessageDeleted,
    b'{"kind":"salt","v":1,"at":0.0,"salt":"00ff"}': records.PseudonymSalt,
    b'{"kind":"forgotten","v":1,"at":0.0,"pseudonym":"forgotten:00ff"}': records.PersonForgotten,
    b'{"kind":"switches","v":1,"at":0.0,"enabled":{"loud":false},"trusted":{"loud":"00ff"}}': records.HookDecisionState,
    b'{"kind":"hooks","v":1,"at":0.0,"node":"n","folders":{"h":{"digest":"00ff","version":"1"}},"owed":[{"hook":"h",'
    b'"token":"hook-h","events":["agent:end"],"when":{"role":["user"]}}]}': records.NodeHooks,
    b'{"kind":"hooks","v":1,"at":0.0,"node":"n","guards":{"h":{"intercepts":["tool:before"],"when":{"tool":"shell"},'
    b'"order":-5,"stored_as":"h@00ff"}}}': records.NodeHooks,
    b'{"kind":"memory","v":1,"at":0.0,"id":"00ff"}': records.MemoryJournal,
    b'{"kind":"note","v":1,"at":0.0,"memory":"00ff","text":"tea"}': records.MemoryNote,
    b'{"kind":"unremembered","v":1,"at":0.0,"memory":"00ff"}': records.NotesForgotten,
    b'{"kind":"removed","v":1,"at":0.0,"files":["00ff"]}': records.FileRemoval,
    b'{"kind":"file","v":1,"at":0.0,"folder":"root/w","path":"a.md","stored":"00-ff","sha256":"ff","is_executable":true,'
    b'"changed":1.5}': records.FolderFile,
    b'{"kind":"unheard","v":1,"at":0.0,"place":"net:-1","removed":[3,5]}': records.HeardRemoval,
    b'{"kind":"stored","v":1,"at":0.0,"hook":"h","key":"a","value":[1]}': records.StoredValue,
    b'{"kind":"event","v":1,"at":0.0,"name":"agent:end","fields":{"x":1}}': records.EmittedEvent,
}


@pytest.mark.parametrize(("data", "kind"), WRITTEN.items(), ids=lambda one: getattr(one, "__name__", ""))
def test_what_version_1_wrote_is_readable(data: bytes, kind: type) -> None:
    kept = records.decode(data)
    assert type(kept) is kind
    assert records.decode(records.encode(kept)) == kept


def test_every_kind_of_record_is_among_those() -> None:
    kinds = {kind.__name__ for kind in records.RECORD_KINDS}
    assert {kind.__name__ for kind in WRITTEN.values()} == kinds


def test_fields_of_a_later_release_of_the_same_version_are_passed_over() -> None:
    assert records.decode(b'{"kind":"undone","v":1,"turns":2,"why":"new"}') == records.TurnsUndone(turns=2)


def test_a_record_of_a_later_version_is_refused_before_it_is_misread() -> None:
    with pytest.raises(EngineTooNew, match="upgrade") as refused:
        records.decode(b'{"kind":"never seen","v":2,"turns":"many"}')
    assert refused.value.exit == 78


@pytest.mark.parametrize("data", [b"", b"{}", b'{"kind":"claim","v":1}', b"[1]", b'{"kind":"x","v":1}'])
def test_what_is_no_record_is_an_error(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        records.decode(data)


def test_a_key_is_one_segment_whatever_is_in_it() -> None:
    for key in ("", "a.b", "*", ">", "agent:main:net:dm:1 2", "ä" * 1000):
        assert subjects.session_subject_of("in", key).count(".") == 2
        assert matches("gw.in.*", subjects.session_subject_of("in", key))


def test_replies_are_found_by_session_by_place_and_by_platform() -> None:
    at, elsewhere = Address("net", "1"), Address("net", "1", "thread", "9")
    out = subjects.reply_subject_of(at, "k")
    assert matches(subjects.reply_pattern_of_session("k"), out)
    assert not matches(subjects.reply_pattern_of_session("other"), out)
    assert matches(subjects.reply_pattern_of_place(subjects.place_of(at)), out)
    assert not matches(subjects.reply_pattern_of_place(subjects.place_of(elsewhere)), out)
    assert matches(subjects.reply_pattern_of_platform("net"), out)
    assert not matches(subjects.reply_pattern_of_platform("ne"), out)
    assert matches(subjects.OUT_SUBJECTS, out)


def test_a_platform_of_any_name_is_one_segment() -> None:
    for name in ("net", "Net 2", "a.b", "*"):
        assert subjects.reply_subject_of(Address(name, "1"), "k").count(".") == 4


def test_events_stand_under_their_names() -> None:
    assert subjects.event_subject_of("tool:before") == "gw.ev.tool.before"
    assert subjects.event_subject_of("tool:*") == "gw.ev.tool.>"
    assert subjects.event_subject_of("*") == "gw.ev.>"


def test_a_cursor_stands_under_its_reader_and_its_bot() -> None:
    assert subjects.cursor_subject_of("net") == "gw.cur.net"
    assert subjects.cursor_subject_of("net", "bot") == f"gw.cur.net.{subjects.token_of('bot')}"


def test_what_stands_in_a_subject_is_read_from_it() -> None:
    at = Address("net", "1")
    assert subjects.place_of_reply_subject(subjects.reply_subject_of(at, "k")) == subjects.place_of(at)
    for subject in (subjects.session_subject_of("dead.turns", "k"), subjects.reply_subject_of(at, "k")):
        assert subjects.token_of_subject(subject) == subjects.token_of("k")


def test_no_other_module_spells_a_subject() -> None:
    top = Path(subjects.__file__).parent
    spelt = {
        f"{path.relative_to(top)}:{node.lineno}: {node.value}"
        for path in top.rglob("*.py")
        if path != Path(subjects.__file__)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(("gw.", "rt."))
    }
    assert spelt == set()
