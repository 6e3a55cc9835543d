import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Siddhi 5: a pattern for the next event, a join with a time window for all pairs of a key.
 *
 * Siddhi's clock is the time of the events, a millisecond for each unit of the question. */
final class SiddhiDriver {
    private static final String STREAM = "@app:playback define stream S (kind string, key long); ";
    private static final long EPOCH = 1_600_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        Protocol.serve(SiddhiDriver::count, "next", "key");
    }

    static String app(Protocol.Question question) {
        List<String> kinds = question.kinds();
        if (question.name().equals("next")) {
            String steps = IntStream.range(0, kinds.size())
                .mapToObj(n -> "e" + n + "=S[kind=='" + kinds.get(n) + "']")
                .collect(Collectors.joining(" -> "));
            return STREAM + "from every " + steps + " within " + question.window()
                + " milliseconds select e0.key insert into Found;";
        }
        // A window of n milliseconds loses an event n milliseconds after it.
        return STREAM + "from S[kind=='" + kinds.get(1) + "']#window.length(1) as b unidirectional join S[kind=='"
            + kinds.get(0) + "']#window.time(" + (question.window() + 1) + " milliseconds) as a "
            + "on a.key == b.key select a.key insert into Found;";
    }

    static long count(Protocol.Question question, List<Protocol.Event> events) throws Exception {
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime runtime = manager.createSiddhiAppRuntime(app(question));
        long[] found = {0};
        runtime.addCallback("Found", new StreamCallback() {
            @Override
            public void receive(Event[] some) {
                found[0] += some.length;
            }
        });
        InputHandler input = runtime.getInputHandler("S");
        runtime.start();
        for (Protocol.Event event : events) {
            input.send(EPOCH + event.time, new Object[] {event.kind, event.key});
        }
        runtime.shutdown();
        manager.shutdown();
        return found[0];
    }
}
