import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The driver's side of the protocol in ../../README.md, for drivers in Java. */
final class Protocol {
    /** An event. Flink wants a public class with a constructor without arguments. */
    public static class Event {
        public long time;
        public String kind;
        public long key;
    }

    /** Matches of {@code kinds} in this order, at most {@code window} from first to last. */
    record Question(String name, long window, List<String> kinds) {}

    /** Counts the matches of a question, from the first event on. */
    interface Engine {
        long count(Question question, List<Event> events) throws Exception;
    }

    private static final com.sun.management.OperatingSystemMXBean CPU =
        (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static volatile long started;

    /** Begins the measurement anew, for an engine that starts a job before its first event. */
    static void begin() {
        started = CPU.getProcessCpuTime();
    }

    /** Answers on standard output what is asked on standard input, until its end. */
    static void serve(Engine engine, String... names) throws Exception {
        // Libraries print there, too; only answers may go to standard output.
        PrintStream answers = System.out;
        System.setOut(System.err);
        Question question = null;
        List<Event> events = new ArrayList<>();
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = lines.readLine()) != null; ) {
            if (line.startsWith("question ")) {
                String[] words = line.split(" ");
                question = new Question(words[1], Long.parseLong(words[2]),
                    List.of(words).subList(3, words.length));
                events = new ArrayList<>();
                answers.println(Arrays.asList(names).contains(question.name())
                    ? "ready" : "cannot: there is no way to ask for " + question.name());
            } else if (line.equals("run")) {
                begin();
                long found = engine.count(question, events);
                answers.println(found + " " + (CPU.getProcessCpuTime() - started) / 1e9);
            } else {
                String[] fields = line.split(",");
                Event event = new Event();
                event.time = Long.parseLong(fields[0]);
                event.kind = fields[1];
                event.key = Long.parseLong(fields[2]);
                events.add(event);
            }
            answers.flush();
        }
        System.exit(0);
    }

    private Protocol() {}
}
